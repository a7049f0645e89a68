// Logs in by URL with the auth provider of the client that is named, lists, calls, refreshes, and says when it is
// logged out. What a person does at a browser is asked for on stdout (`open URL`) and comes back on stdin.
import { createInterface } from 'node:readline';

const [, , kind, url] = process.argv;
let Client, Transport;
if (kind === 'sdk') {
    ({ Client } = await import('@modelcontextprotocol/sdk/client/index.js'));
    ({ StreamableHTTPClientTransport: Transport } = await import('@modelcontextprotocol/sdk/client/streamableHttp.js'));
} else {
    ({ Client, StreamableHTTPClientTransport: Transport } = await import('@modelcontextprotocol/client'));
}
const lines = createInterface({ input: process.stdin })[Symbol.asyncIterator]();
const said = async (text) => {
    console.log(text);
    return (await lines.next()).value;
};
const kept = {};
let back;
const authProvider = {
    redirectUrl: 'http://127.0.0.1:33418/callback',
    clientMetadata: {
        client_name: `TypeScript ${kind}`,
        redirect_uris: ['http://127.0.0.1:33418/callback'],
        grant_types: ['authorization_code', 'refresh_token'],
        response_types: ['code'],
        token_endpoint_auth_method: 'none',
    },
    state: () => 'state-of-typescript',
    clientInformation: () => kept.client,
    saveClientInformation: (client) => { kept.client = client; },
    tokens: () => kept.tokens,
    saveTokens: (tokens) => { kept.tokens = tokens; },
    saveCodeVerifier: (verifier) => { kept.verifier = verifier; },
    codeVerifier: () => kept.verifier,
    redirectToAuthorization: async (address) => { back = await said(`open ${address}`); },
};
const options = kind === 'client-2026' ? { versionNegotiation: { mode: 'auto' } } : {};
const connect = async () => {
    const client = new Client({ name: 'test', version: '1' }, { capabilities: {}, ...options });
    const transport = new Transport(new URL(url), { authProvider });
    try {
        await client.connect(transport);
        return client;
    } catch (error) {
        if (!back?.startsWith('http')) throw error;
        const answer = new URL(back).searchParams;
        back = undefined;
        await transport.finishAuth(kind === 'sdk' ? answer.get('code') : answer);
        return await connect();
    }
};
const client = await connect();
const { tools } = await client.listTools();
const called = await client.callTool({ name: 'mcp_mail_echo', arguments: { text: 'caffè' } });
const first = kept.tokens;
kept.tokens = { ...first, access_token: 'over' };
const again = await client.callTool({ name: 'mcp_mail_echo', arguments: { text: 'again' } });
const isRefreshed = kept.tokens.access_token !== 'over' && kept.tokens.refresh_token !== first.refresh_token;
await said('revoke');
let isOut = false;
try {
    await client.callTool({ name: 'mcp_mail_echo', arguments: { text: 'out' } });
} catch (error) {
    isOut = true;
}
console.log(JSON.stringify({ names: tools.map((tool) => tool.name), called, again, isRefreshed, isOut, scope: first.scope }));
process.exit(0);
