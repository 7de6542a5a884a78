// The Vercel AI SDK against a running server, unmodified. Usage: node vercel.mjs ADDRESS MODEL
// Prints a line for each check; the exit code is 1 if one failed.

import { createOpenAI } from '@ai-sdk/openai';
import { createOpenAICompatible } from '@ai-sdk/openai-compatible';
import { generateObject, generateText, streamText, tool } from 'ai';
import assert from 'node:assert';
import { z } from 'zod';

const [, , address, model] = process.argv;
const baseURL = `${address}/v1`;
const openai = createOpenAI({ baseURL, apiKey: 'any' });
const compatible = createOpenAICompatible({
  name: 'candor',
  baseURL,
  supportsStructuredOutputs: true,
  includeUsage: true,
});
const providers = {
  chat: openai.chat(model),
  responses: openai.responses(model),
  compatible: compatible.chatModel(model),
};
const common = { maxRetries: 0, maxOutputTokens: 120 };
const weather = tool({
  description: 'The weather in a city',
  inputSchema: z.object({ city: z.string().max(20) }),
});

const checks = {};
for (const [name, provider] of Object.entries(providers)) {
  checks[`${name}: text`] = async () => {
    const answer = await generateText({ ...common, model: provider, prompt: 'Name a bird.' });
    assert(answer.text.length > 0 && answer.usage.outputTokens > 0);
  };
  checks[`${name}: stream`] = async () => {
    const answer = streamText({ ...common, model: provider, prompt: 'Name a bird.' });
    let text = '';
    for await (const piece of answer.textStream) text += piece;
    assert(text.length > 0 && (await answer.usage).outputTokens > 0);
  };
  checks[`${name}: tool`] = async () => {
    const wish = { ...common, model: provider, tools: { weather }, toolChoice: 'required' };
    const answer = await generateText({ ...wish, prompt: 'Is it warm in Oslo?' });
    assert.equal(answer.toolCalls[0].toolName, 'weather');
    assert.equal(typeof answer.toolCalls[0].input.city, 'string');
    const streamed = streamText({ ...wish, prompt: 'Is it warm in Oslo?' });
    assert.equal((await streamed.toolCalls)[0].toolName, 'weather');
  };
  checks[`${name}: object`] = async () => {
    const schema = z.object({ name: z.string().max(20) });
    const answer = await generateObject({
      ...common,
      model: provider,
      schema,
      prompt: 'Name a bird.',
    });
    assert.equal(typeof answer.object.name, 'string');
  };
  checks[`${name}: error`] = async () => {
    const wish = { ...common, model: provider, prompt: 'word '.repeat(200000) };
    await assert.rejects(generateText(wish), /context/);
  };
  checks[`${name}: left`] = async () => {
    const controller = new AbortController();
    const answer = streamText({
      ...common,
      maxOutputTokens: 2000,
      model: provider,
      prompt: 'Write a very long story about a bird.',
      abortSignal: controller.signal,
    });
    for await (const _ of answer.textStream) {
      controller.abort();
      break;
    }
    for (let i = 0; i < 100; i++) {
      const health = await (await fetch(`${address}/health`)).json();
      if (health.requests_active === 0) return;
      await new Promise((done) => setTimeout(done, 50));
    }
    assert.fail('it did not stop');
  };
}

let failed = 0;
for (const [name, run] of Object.entries(checks)) {
  try {
    await run();
    console.log(`ok ${name}`);
  } catch (error) {
    failed += 1;
    console.log(`FAILED ${name}\n${error.stack}`);
  }
}
console.log(`test result: ${Object.keys(checks).length - failed} passed; ${failed} failed`);
process.exit(failed > 0 ? 1 : 0);
