"""Hooks of one agent beside the session's."""

from tests.waiting import until

from handaxe import Session
from handaxe.app.agent_setup.subagent_resources import AgentHooks
from handaxe.app.session import get_parts
from handaxe.contract.ports.agents import AgentDefinition


async def test_what_hooks_are_only_told_reaches_the_session_s_and_the_agent_s(project):
    heard = []

    async def session_s(event):
        heard.append(("session", event["hook_event_name"]))

    async def agent_s(event):
        heard.append(("agent", event["hook_event_name"]))

    hooks = {"CwdChanged": [{"hooks": [session_s]}]}
    async with Session(project, hooks=hooks) as session:
        kind = AgentDefinition(
            name="k", description="d", hooks={"CwdChanged": [{"hooks": [agent_s]}]}
        )
        joined = AgentHooks(
            get_parts(session).pipeline_context.hooks,
            kind,
            get_parts(session).configuration,
            emit=lambda _: None,
            keep=lambda text: text,
        )
        joined.tell({"hook_event_name": "CwdChanged", "cwd": str(project)})
        await until(lambda: len(heard) == 2)
        await joined.close()
    assert sorted(heard) == [("agent", "CwdChanged"), ("session", "CwdChanged")]
