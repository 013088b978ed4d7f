// The official TypeScript client against our server on stdio: what it got, as one line of JSON.
import { pathToFileURL } from "node:url";
const [place, python, root] = process.argv.slice(2);
const sdk = (name) =>
  import(pathToFileURL(`${place}/node_modules/@modelcontextprotocol/sdk/dist/esm/${name}.js`).href);
const { Client } = await sdk("client/index");
const { StdioClientTransport } = await sdk("client/stdio");
const { ElicitRequestSchema, ListRootsRequestSchema } = await sdk("types");

const asked = [];
const client = new Client(
  { name: "ts", version: "1" },
  { capabilities: { elicitation: { form: {} }, roots: { listChanged: true } } },
);
client.setRequestHandler(ElicitRequestSchema, (request) => {
  asked.push(request.params.message.split("\n")[0]);
  return { action: "accept", content: { answer: "once" } };
});
client.setRequestHandler(ListRootsRequestSchema, () => ({
  roots: [{ uri: pathToFileURL(root).href }],
}));
await client.connect(
  new StdioClientTransport({ command: python, args: ["-m", "handaxe", "mcp"], cwd: "/", env: process.env }),
);
const { tools } = await client.listTools();
const read = await client.callTool({ name: "Read", arguments: { file_path: "a.py" } });
const edit = await client.callTool({
  name: "Edit",
  arguments: { file_path: "a.py", old_string: "1", new_string: "2" },
});
const many = await Promise.all(
  Array.from({ length: 100 }, () => client.callTool({ name: "Read", arguments: { file_path: "a.py" } })),
);
let unknown;
try {
  await client.callTool({ name: "Nope", arguments: {} });
} catch (error) {
  unknown = error.code;
}
const began = performance.now();
await client.close();
const report = {
  server: client.getServerVersion()?.name ?? "closed",
  tools: tools.map((tool) => tool.name),
  read: read.content[0].text,
  edited: !edit.isError,
  many: many.filter((result) => !result.isError).length,
  unknown,
  asked,
  closed_ms: performance.now() - began,
};
process.stdout.write(`${JSON.stringify(report)}\n`);
process.exit(0);
