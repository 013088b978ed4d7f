"""What the ecosystem's own settings files may hold beside the options of `model`.

Such a key is accepted without a word and not used here. This is data, kept as lists of names.
"""

_TOP = """
    $schema advisorModel agentPushNotifEnabled allowAllClaudeAiMcps
    allowedChannelPlugins alwaysThinkingEnabled
    autoCompactWindow autoConnectIde autoInstallIdeExtension
    autoMode autoScrollEnabled autoUpdates autoUpdatesChannel availableModels
    awaySummaryEnabled awsAuthRefresh awsCredentialExport axScreenReader blockedMarketplaces
    browserExternalPageTools channelsEnabled claudeMd companyAnnouncements
    crossSessionInbound defaultShell dialogExpiry diffTool disableAgentView disableArtifact
    disableAutoMode disableBrowserExternalNavigation disableBundledSkills
    disableClaudeAiConnectors disableCommandPluginSources disableDeepLinkRegistration
    disableMobileSimulatorTools disableRemoteControl disableSideloadFlags
    disableWorkflows editorMode emojiCompletionEnabled
    enableArtifact enableWorkflows enabledPlugins enforceAvailableModels externalEditorContext
    extraKnownMarketplaces fallbackModel fastMode fastModePerSessionOptIn feedbackSurveyRate
    fileSuggestion footerLinksRegexes forceLoginGatewayUrl forceLoginMethod
    forceLoginOrgUUID forceRemoteSettingsRefresh gcpAuthRefresh includeCoAuthoredBy
    inputNeededNotifEnabled isolatePeerMachines keybindingFlavor
    minimumVersion modelOverrides otelHeadersHelper parentSettingsBehavior
    permissionExplainerEnabled pluginConfigs pluginSuggestionMarketplaces
    pluginTrustMessage policyHelper prUrlTemplate preferredNotifChannel prefersReducedMotion
    processWrapper promptSuggestionEnabled remote remoteControlAtStartup requiredMaximumVersion
    requiredMinimumVersion respondToBashCommands showClearContextOnPlanAccept
    showThinkingSummaries showTurnDuration skipAutoPermissionPrompt
    skipDangerousModePermissionPrompt
    skipWebFetchPreflight spellcheck spinnerTipsEnabled spinnerTipsOverride spinnerVerbs sshConfigs
    sshHostAllowlist statusLine strictKnownMarketplaces strictPluginOnlyCustomization
    subagentStatusLine switchModelsOnFlag syncClaudeAiSkills syntaxHighlightingDisabled
    teammateDefaultModel teammateMode terminalProgressBarEnabled terminalTitleFromRename theme
    todoFeatureEnabled tui ultracode useAutoModeDuringPlan verbose viewMode vimInsertModeRemaps
    voice voiceEnabled wheelScrollAccelerationEnabled workflowKeywordTriggerEnabled
    workflowSizeGuideline wslInheritsWindowsSettings
"""
_SANDBOX = """
    allowAppleEvents credentials enableWeakerNestedSandbox enableWeakerNetworkIsolation
    socatPath ripgrep
"""
_SANDBOX_NETWORK = """
    allowMachLookup httpProxyPort socksProxyPort tlsTerminate
"""

UNUSED: dict[tuple[str, ...], frozenset[str]] = {
    (): frozenset(_TOP.split()),
    ("sandbox",): frozenset(_SANDBOX.split()),
    ("sandbox", "network"): frozenset(_SANDBOX_NETWORK.split()),
    ("worktree",): frozenset({"bgIsolation"}),
    ("attribution",): frozenset({"sessionUrl"}),
}
"""Names that are known and not used, by the group they stand in."""

_RESTRICTING = """
    availableModels blockedMarketplaces disableArtifact disableAutoMode disableBundledSkills
    disableCommandPluginSources disableRemoteControl disableSideloadFlags disableWorkflows
    enforceAvailableModels forceLoginGatewayUrl forceLoginMethod forceLoginOrgUUID
    isolatePeerMachines processWrapper requiredMaximumVersion requiredMinimumVersion
    sshHostAllowlist strictKnownMarketplaces strictPluginOnlyCustomization
"""
RESTRICTING = frozenset(_RESTRICTING.split())
"""Those of the unused names that forbid or require something: silence would look like obedience."""

_TOOLS = """
    Agent Artifact AskUserQuestion Bash BashOutput Brief Cd Config CronCreate CronDelete CronList
    Edit EndConversation EnterPlanMode EnterWorktree ExitPlanMode ExitWorktree Glob Grep KillShell
    LS LSP ListAgents ListMcpResourcesTool MCPSearch Monitor MultiEdit NotebookEdit NotebookRead
    PowerShell Projects PushNotification REPL Read ReadMcpResourceDirTool ReadMcpResourceTool
    RefreshMcpTools RemoteTrigger ReportFindings ScheduleWakeup SendMessage SendUserFile
    ShareOnboardingGuide ShowOnboardingRolePicker Skill SlashCommand Sleep StructuredOutput Task
    TaskCreate TaskGet TaskList TaskOutput TaskStop TaskUpdate TodoWrite ToolSearch Undo
    WaitForMcpServers WebFetch WebSearch Workflow Write
"""
TOOL_NAMES = frozenset(_TOOLS.split())
"""Tools that a rule may name whether or not this session offers them."""
