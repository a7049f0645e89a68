// Lists and calls through the MCP door, with the client that is named: sdk (2025 era) or client (both eras).
const [, , kind, url, token] = process.argv;
const headers = { Authorization: `Bearer ${token}` };
let Client, Transport;
if (kind === 'sdk') {
    ({ Client } = await import('@modelcontextprotocol/sdk/client/index.js'));
    ({ StreamableHTTPClientTransport: Transport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js'));
} else {
    ({ Client, StreamableHTTPClientTransport: Transport } = await import('@modelcontextprotocol/client'));
}
const options = kind === 'client-2026' ? { versionNegotiation: { mode: 'auto' } } : {};
const client = new Client({ name: 'test', version: '1' }, { ...options, capabilities: { elicitation: { form: {} } } });
let asked = '';
const allow = async (request) => {
    asked = request.params.message;
    return { action: 'accept', content: {} };
};
if (kind === 'sdk') {
    const { ElicitRequestSchema } = await import('@modelcontextprotocol/sdk/types.js');
    client.setRequestHandler(ElicitRequestSchema, allow);
} else {
    client.setRequestHandler('elicitation/create', allow);
}
await client.connect(new Transport(new URL(url), { requestInit: { headers } }));
const { tools } = await client.listTools();
const called = await client.callTool({ name: 'mcp_box_echo', arguments: { text: 'caffè' } });
const structured = await client.callTool({ name: 'rows', arguments: {} });
const failed = await client.callTool({ name: 'mcp_box_fail', arguments: { text: 'no milk' } });
const approved = await client.callTool({ name: 'forget', arguments: { name: 'milk' } });
const version = client.getNegotiatedProtocolVersion?.();
console.log(JSON.stringify({ version, names: tools.map((tool) => tool.name), called, structured, failed, asked, approved }));
await client.close();
