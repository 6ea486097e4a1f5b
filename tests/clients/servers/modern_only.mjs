// A server of the TypeScript SDK line 2 that speaks 2026-07-28 only and refuses `initialize`: node modern_only.mjs PORT
// PARTS_MODULES is the node_modules folder with the SDK.
import { createRequire } from 'node:module';
import { pathToFileURL } from 'node:url';
import http from 'node:http';

const need = createRequire(process.env.PARTS_MODULES + '/x.js');
const load = name => import(pathToFileURL(need.resolve(name)));
const { createMcpHandler, McpServer } = await load('@modelcontextprotocol/server');
const { toNodeHandler } = await load('@modelcontextprotocol/node');
const z = await load('zod/v4');

const handler = createMcpHandler(() => {
  const server = new McpServer({ name: 'modern-only', version: '1' });
  const inputSchema = z.object({ message: z.string() });
  server.registerTool('echo', { description: 'echo', inputSchema }, async ({ message }) => ({ content: [{ type: 'text', text: message }] }));
  return server;
}, { legacy: 'reject' });
http.createServer(toNodeHandler(handler)).listen(Number(process.argv[2]), '127.0.0.1');
