// The TypeScript clients of the matrix: node ts.mjs v1|v2 TARGET PROFILE MODE
//
// TARGET is a URL or {"command": …, "args": […], "env": {…}} as JSON; PROFILE names an entry of the file in MATRIX_FEATURES;
// MODE is legacy, auto or modern (v1 knows legacy only). PARTS_MODULES is the node_modules folder with both SDK lines.
// Prints one JSON object: a feature's name and "ok …", "n/a" or "FAIL …".
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const [line, target, profile, mode] = process.argv.slice(2);
const P = JSON.parse(readFileSync(process.env.MATRIX_FEATURES))[profile];
const need = createRequire(process.env.PARTS_MODULES + '/x.js');
const load = name => import(pathToFileURL(need.resolve(name)));
const sleep = seconds => new Promise(done => setTimeout(done, seconds * 1000));

const seen = { message: 0, progress: 0, list_changed: 0, updated: 0, elicitation: 0, sampling: 0, roots: 0 };
const capabilities = { sampling: {}, elicitation: { form: {} }, roots: { listChanged: true } };
const answers = {
  elicitation: () => (seen.elicitation++, { action: 'accept', content: { name: 'Ann', username: 'ann', email: 'a@example.test', value: 'Ann' } }),
  sampling: () => (seen.sampling++, { role: 'assistant', content: { type: 'text', text: 'canned' }, model: 'm', stopReason: 'endTurn' }),
  roots: () => (seen.roots++, { roots: [{ uri: process.env.MATRIX_ROOT ?? 'file:///srv/data', name: 'data' }] })
};
const NOTHING = Symbol('n/a');
const outcome = {};
let client, era;

async function put(feature, work) {
  const limit = new Promise((_, reject) => setTimeout(() => reject(new Error('timeout')), 20000).unref());
  try {
    const detail = await Promise.race([work(), limit]);
    outcome[feature] = detail === NOTHING ? 'n/a' : `ok ${detail}`.trimEnd();
  } catch (e) {
    outcome[feature] = 'FAIL ' + String(e?.message ?? e).slice(0, 160);
  }
}

async function moreThan(kind, before, seconds) {
  for (const end = Date.now() + seconds * 1000; seen[kind] <= before; await sleep(0.05))
    if (Date.now() > end) throw new Error(`no ${kind}`);
  return '';
}

async function transport(http, stdio) {
  if (!target.startsWith('{')) return new http(new URL(target));
  const { command, args, env } = JSON.parse(target);
  return new stdio({ command, args, env: { ...process.env, ...env }, stderr: 'ignore' });
}

async function connectV1() {
  const { Client } = await load('@modelcontextprotocol/sdk/client/index.js');
  const { StreamableHTTPClientTransport } = await load('@modelcontextprotocol/sdk/client/streamableHttp.js');
  const { StdioClientTransport } = await load('@modelcontextprotocol/sdk/client/stdio.js');
  const T = await load('@modelcontextprotocol/sdk/types.js');
  client = new Client({ name: 'matrix-ts1', version: '1' }, { capabilities });
  client.setRequestHandler(T.ElicitRequestSchema, async () => answers.elicitation());
  client.setRequestHandler(T.CreateMessageRequestSchema, async () => answers.sampling());
  client.setRequestHandler(T.ListRootsRequestSchema, async () => answers.roots());
  client.setNotificationHandler(T.LoggingMessageNotificationSchema, () => { seen.message++; });
  client.setNotificationHandler(T.ToolListChangedNotificationSchema, () => { seen.list_changed++; });
  client.setNotificationHandler(T.ResourceUpdatedNotificationSchema, () => { seen.updated++; });
  await client.connect(await transport(StreamableHTTPClientTransport, StdioClientTransport));
  era = 'legacy';
  return era;
}

async function connectV2() {
  const { Client, StreamableHTTPClientTransport } = await load('@modelcontextprotocol/client');
  const { StdioClientTransport } = await load('@modelcontextprotocol/client/stdio');
  const versions = { legacy: {}, auto: { versionNegotiation: { mode: 'auto' } }, modern: { versionNegotiation: { mode: { pin: '2026-07-28' } } } }[mode];
  client = new Client({ name: 'matrix-ts2', version: '1' }, { capabilities, ...versions });
  client.setRequestHandler('elicitation/create', async () => answers.elicitation());
  client.setRequestHandler('sampling/createMessage', async () => answers.sampling());
  client.setRequestHandler('roots/list', async () => answers.roots());
  client.setNotificationHandler('notifications/message', () => { seen.message++; });
  client.setNotificationHandler('notifications/tools/list_changed', () => { seen.list_changed++; });
  client.setNotificationHandler('notifications/resources/updated', () => { seen.updated++; });
  await client.connect(await transport(StreamableHTTPClientTransport, StdioClientTransport));
  era = client.getProtocolEra();
  return `${era} ${client.getNegotiatedProtocolVersion?.() ?? ''}`;
}

function call([name, args], options = {}, meta = {}) {
  const params = { name, arguments: args, ...meta };
  return line === 'v1' ? client.callTool(params, undefined, options) : client.callTool(params, options);
}

const spell = r => JSON.stringify([r.content, r.structuredContent ?? null, r.isError ?? false]);

async function plain() {
  await put('list', async () => {
    const { tools } = await client.listTools();
    return `${tools.length} ${tools.map(t => t.name).sort().join(' ')}`;
  });
  for (const [feature, wanted] of [['call', false], ['tool_error', true]])
    await put(feature, async () => {
      if (!P[feature]) return NOTHING;
      const result = await call(P[feature]);
      if (Boolean(result.isError) !== wanted) throw new Error(`isError is not ${wanted}`);
      return spell(result);
    });
  await put('progress', async () => {
    if (!P.progress) return NOTHING;
    await call(P.progress, { onprogress: () => { seen.progress++; } });
    return moreThan('progress', 0, 1);
  });
  await put('logging', async () => {
    if (!P.logging) return NOTHING;
    const log = async () => {
      if (era === 'legacy') { await client.setLoggingLevel('debug'); await call(P.logging); }
      else await call(P.logging, {}, { _meta: { 'io.modelcontextprotocol/logLevel': 'debug' } });
    };
    await log();
    if (!P.logging_toggles) return moreThan('message', 0, P.wait ?? 1);
    // Without a session, the client before this one may have left it switched on: then this was off, and once more is on.
    return moreThan('message', 0, 2).catch(async () => { await log(); return moreThan('message', 0, P.wait ?? 1); });
  });
  await put('cancel', async () => {
    if (!P.cancel) return NOTHING;
    const count = async () => P.cancelled ? Number((await call(P.cancelled)).content[0].text) : 0;
    const before = await count();
    const stop = new AbortController();
    setTimeout(() => stop.abort(), 700);
    const interrupted = await call(P.cancel, { signal: stop.signal }).then(() => false, () => true);
    if (!interrupted) throw new Error('call was not interrupted');
    for (const end = Date.now() + 4000; P.cancelled && (await count()) <= before; await sleep(0.1))
      if (Date.now() > end) throw new Error('the server did not hear of it');
    await call(P.call);
    return '';
  });
}

async function asks() {
  for (const kind of ['elicitation', 'sampling', 'roots'])
    await put(kind, async () => {
      const planned = P[kind]?.[era] ?? P[kind]?.legacy;
      if (!planned) return NOTHING;
      const result = await call(planned);
      if (!seen[kind]) throw new Error('client not asked: ' + JSON.stringify(result.content).slice(0, 80));
      return '';
    });
}

async function changes() {
  await put('list_changed', async () => {
    if (!P.list_changed) return NOTHING;
    const listening = era === 'modern' ? await client.listen({ toolsListChanged: true }) : undefined;
    const before = seen.list_changed;
    await call(P.list_changed);
    const heard = await moreThan('list_changed', before, 1.5).catch(e => e);
    if (P.toggles) await call(P.list_changed);
    await listening?.close?.();
    if (heard instanceof Error) throw heard;
    return '';
  });
  await put('subscribe', async () => {
    if (!P.subscribe) return NOTHING;
    const listening = era === 'modern' ? await client.listen({ resourceSubscriptions: [P.subscribe] }) : undefined;
    if (!listening) await client.subscribeResource({ uri: P.subscribe });
    if (P.update) { await call(P.update); await moreThan('updated', 0, P.wait ?? 1); }
    if (listening) await listening.close();
    else await client.unsubscribeResource({ uri: P.subscribe });
    return '';
  });
}

async function content() {
  await put('read', async () => P.read ? JSON.stringify((await client.readResource({ uri: P.read })).contents) : NOTHING);
  await put('prompt', async () => {
    if (!P.prompt) return NOTHING;
    const { prompts } = await client.listPrompts();
    const got = await client.getPrompt({ name: P.prompt[0], arguments: P.prompt[1] });
    return `${prompts.length} ${JSON.stringify(got.messages)}`;
  });
  await put('completion', async () => {
    if (!P.completion) return NOTHING;
    const [name, argument, value] = P.completion;
    const got = await client.complete({ ref: { type: 'ref/prompt', name }, argument: { name: argument, value } });
    return got.completion.values.join(' ');
  });
}

await put('initialize', line === 'v1' ? connectV1 : connectV2);
if (outcome.initialize.startsWith('ok')) {
  await plain();
  await asks();
  await changes();
  await content();
  await put('end_session', async () => {
    if (era === 'modern') return NOTHING;
    await client.transport.terminateSession?.();
    return '';
  });
}
console.log(JSON.stringify(outcome));
await Promise.race([client?.close().catch(() => {}), sleep(3)]);
process.exit(0);
