"""The official Python packages against a running server, unmodified.

Usage: clients.py ADDRESS MODEL. Prints a line for each check; the exit code is 1 if one failed.
The model is a small one, so what is asserted is the form of an answer, never its sense.
"""

import json
import sys
import time
import traceback
import urllib.request

import anthropic
import ollama
import openai
from langchain_core.messages import HumanMessage, SystemMessage
from langchain_openai import ChatOpenAI, OpenAIEmbeddings
from pydantic import BaseModel, Field

ADDRESS, MODEL = sys.argv[1], sys.argv[2]
ASK = [{"role": "user", "content": "Name a bird in one word."}]
WEATHER = {
    "type": "object",
    "properties": {"city": {"type": "string", "maxLength": 20}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "weather", "parameters": WEATHER}}

oai = openai.OpenAI(base_url=f"{ADDRESS}/v1", api_key="any", max_retries=0)
ant = anthropic.Anthropic(base_url=ADDRESS, api_key="any", max_retries=0)
oll = ollama.Client(host=ADDRESS)
failed = 0
checks = []


def check(function):
    checks.append(function)
    return function


def health():
    with urllib.request.urlopen(f"{ADDRESS}/health") as answer:
        return json.load(answer)


def stands_still():
    """Nobody's request is under way: what was left has stopped."""
    for _ in range(100):
        if health()["requests_active"] == 0:
            return
        time.sleep(0.05)
    raise AssertionError(health())


@check
def openai_models():
    assert MODEL in [model.id for model in oai.models.list()]
    assert oai.models.retrieve(MODEL).id == MODEL


@check
def openai_chat():
    answer = oai.chat.completions.create(model=MODEL, messages=ASK, max_tokens=12, seed=1)
    again = oai.chat.completions.create(model=MODEL, messages=ASK, max_tokens=12, seed=1)
    assert answer.choices[0].message.content
    assert answer.choices[0].message.content == again.choices[0].message.content
    assert answer.choices[0].finish_reason in ("stop", "length")
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + answer.usage.completion_tokens
    assert answer.candor["backend"]["served"] in ("cpu", "gpu")


@check
def openai_chat_streamed_is_the_same():
    wish = dict(model=MODEL, messages=ASK, max_tokens=24, seed=2)
    whole = oai.chat.completions.create(**wish)
    stream = oai.chat.completions.create(
        **wish, stream=True, stream_options={"include_usage": True}
    )
    text, usage = "", None
    for chunk in stream:
        usage = chunk.usage or usage
        for choice in chunk.choices:
            text += choice.delta.content or ""
    assert text == whole.choices[0].message.content
    assert usage.completion_tokens == whole.usage.completion_tokens


@check
def openai_several_replies_and_probabilities():
    answer = oai.chat.completions.create(
        model=MODEL, messages=ASK, max_tokens=4, n=3, logprobs=True, top_logprobs=2
    )
    assert len(answer.choices) == 3
    for choice in answer.choices:
        for token in choice.logprobs.content:
            assert token.logprob <= 0 and len(token.top_logprobs) == 2


@check
def openai_schema():
    class Bird(BaseModel):
        name: str = Field(max_length=20)
        flies: bool

    answer = oai.chat.completions.parse(
        model=MODEL, messages=ASK, response_format=Bird, max_tokens=200
    )
    assert isinstance(answer.choices[0].message.parsed, Bird)
    text = oai.chat.completions.create(
        model=MODEL,
        messages=ASK,
        max_tokens=200,
        temperature=0,
        response_format={"type": "json_schema", "json_schema": {"name": "w", "schema": WEATHER}},
    ).choices[0].message.content
    assert set(json.loads(text)) == {"city"}


@check
def openai_tool_call():
    answer = oai.chat.completions.create(
        model=MODEL, messages=ASK, tools=[TOOL], tool_choice="required", max_tokens=120
    )
    call = answer.choices[0].message.tool_calls[0]
    assert answer.choices[0].finish_reason == "tool_calls"
    assert call.function.name == "weather" and "city" in json.loads(call.function.arguments)
    # The result goes back, and an answer comes.
    followed = ASK + [
        answer.choices[0].message.model_dump(exclude_none=True),
        {"role": "tool", "tool_call_id": call.id, "content": "warm"},
    ]
    answer = oai.chat.completions.create(
        model=MODEL, messages=followed, tools=[TOOL], max_tokens=8
    )
    assert answer.usage.completion_tokens > 0


@check
def openai_tool_call_streamed():
    with oai.chat.completions.stream(
        model=MODEL,
        messages=ASK,
        tools=[TOOL],
        tool_choice={"type": "function", "function": {"name": "weather"}},
        max_tokens=120,
    ) as stream:
        answer = stream.get_final_completion()
    call = answer.choices[0].message.tool_calls[0]
    assert call.function.name == "weather" and "city" in json.loads(call.function.arguments)


@check
def openai_completions_responses_and_embeddings():
    answer = oai.completions.create(model=MODEL, prompt="Birds sing because", max_tokens=6)
    assert answer.choices[0].text
    response = oai.responses.create(model=MODEL, input="Name a bird.", max_output_tokens=16)
    assert response.output_text
    text, last = "", None
    for event in oai.responses.create(
        model=MODEL, input="Name a bird.", max_output_tokens=16, stream=True
    ):
        last = event.type
        if event.type == "response.output_text.delta":
            text += event.delta
    assert text and last in ("response.completed", "response.incomplete")
    vectors = oai.embeddings.create(model=MODEL, input=["a bird", "a stone"]).data
    assert len(vectors) == 2 and abs(sum(x * x for x in vectors[0].embedding) - 1) < 1e-3


@check
def openai_errors():
    for error, wish in [
        (openai.NotFoundError, dict(model="no-such-model", messages=ASK)),
        (openai.BadRequestError, dict(model=MODEL, messages=ASK, temperature=9)),
        (openai.BadRequestError, dict(model=MODEL, messages=[])),
        (
            openai.BadRequestError,
            dict(model=MODEL, messages=[{"role": "user", "content": "word " * 200000}]),
        ),
    ]:
        try:
            oai.chat.completions.create(**wish)
        except error as raised:
            assert raised.body["message"]
        else:
            raise AssertionError(f"no {error.__name__}")


@check
def openai_left():
    stream = oai.chat.completions.create(
        model=MODEL, messages=ASK, max_tokens=2000, stream=True, logit_bias={}
    )
    next(iter(stream))
    stream.close()
    stands_still()
    try:
        oai.with_options(timeout=0.3).chat.completions.create(
            model=MODEL,
            messages=[{"role": "user", "content": "Write a very long story."}],
            max_tokens=2000,
            response_format={
                "type": "json_schema",
                "json_schema": {
                    "name": "long",
                    "schema": {"type": "array", "minItems": 900, "items": {"type": "integer"}},
                },
            },
        )
    except openai.APITimeoutError:
        stands_still()
    else:
        raise AssertionError("it was not left")


@check
def anthropic_messages():
    answer = ant.messages.create(model=MODEL, max_tokens=12, messages=ASK, system="Be brief.")
    assert answer.content[0].text and answer.stop_reason in ("end_turn", "max_tokens")
    assert answer.usage.output_tokens > 0
    count = ant.messages.count_tokens(model=MODEL, messages=ASK)
    assert count.input_tokens > 0


@check
def anthropic_stream():
    with ant.messages.stream(model=MODEL, max_tokens=16, messages=ASK) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == final.content[0].text and final.usage.output_tokens > 0


@check
def anthropic_tool():
    wish = dict(
        model=MODEL,
        max_tokens=120,
        messages=ASK,
        tools=[{"name": "weather", "input_schema": WEATHER}],
        tool_choice={"type": "tool", "name": "weather"},
    )
    answer = ant.messages.create(**wish)
    with ant.messages.stream(**wish) as stream:
        streamed = stream.get_final_message()
    for message in (answer, streamed):
        assert message.stop_reason == "tool_use"
        block = message.content[-1]
        assert block.name == "weather" and "city" in block.input
    followed = ASK + [
        {"role": "assistant", "content": [block.model_dump() for block in answer.content]},
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": answer.content[-1].id, "content": "warm"}
            ],
        },
    ]
    answer = ant.messages.create(model=MODEL, max_tokens=8, messages=followed)
    assert answer.usage.output_tokens > 0


@check
def anthropic_errors():
    try:
        ant.messages.create(model="no-such-model", max_tokens=1, messages=ASK)
    except anthropic.NotFoundError as raised:
        assert raised.body["error"]["type"] == "not_found_error"
    else:
        raise AssertionError("no NotFoundError")
    try:
        ant.messages.create(model=MODEL, max_tokens=0, messages=ASK)
    except anthropic.BadRequestError:
        pass
    else:
        raise AssertionError("no BadRequestError")


@check
def ollama_everything():
    assert MODEL in [model.model for model in oll.list().models]
    assert oll.ps().models[0].model == MODEL
    assert "completion" in oll.show(MODEL).capabilities
    answer = oll.chat(model=f"{MODEL}:latest", messages=ASK, options={"num_predict": 12})
    assert answer.message.content and answer.eval_count > 0
    pieces = oll.chat(
        model=MODEL, messages=ASK, stream=True, options={"num_predict": 12, "seed": 3}
    )
    assert "".join(piece.message.content for piece in pieces)
    assert oll.generate(model=MODEL, prompt="Birds", options={"num_predict": 5}).response
    bound = oll.chat(model=MODEL, messages=ASK, format=WEATHER, options={"num_predict": 100})
    assert set(json.loads(bound.message.content)) == {"city"}
    assert len(oll.embed(model=MODEL, input=["a", "b"]).embeddings) == 2
    try:
        oll.chat(model="no-such-model", messages=ASK)
    except ollama.ResponseError as raised:
        assert raised.status_code == 404
    else:
        raise AssertionError("no ResponseError")


@check
def langchain_chat():
    model = ChatOpenAI(
        model=MODEL, base_url=f"{ADDRESS}/v1", api_key="any", max_tokens=16, max_retries=0
    )
    asked = [SystemMessage("Be brief."), HumanMessage("Name a bird.")]
    assert model.invoke(asked).content
    assert "".join(piece.content for piece in model.stream(asked))
    assert len(model.batch([asked, asked, asked])) == 3


@check
def langchain_tools_and_schema():
    class Weather(BaseModel):
        """The weather in a city."""

        city: str = Field(max_length=20)

    class Bird(BaseModel):
        name: str = Field(max_length=20)

    model = ChatOpenAI(
        model=MODEL, base_url=f"{ADDRESS}/v1", api_key="any", max_tokens=300, max_retries=0
    )
    bound = model.bind_tools([Weather], tool_choice="Weather")
    call = bound.invoke("Is it warm in Oslo?").tool_calls[0]
    assert call["name"] == "Weather" and "city" in call["args"]
    bird = model.with_structured_output(Bird, method="json_schema").invoke("Name a bird.")
    assert isinstance(bird, Bird)
    vectors = OpenAIEmbeddings(
        model=MODEL, base_url=f"{ADDRESS}/v1", api_key="any", check_embedding_ctx_length=False
    ).embed_documents(["a", "b"])
    assert len(vectors) == 2


for function in checks:
    try:
        function()
        print(f"ok {function.__name__}", flush=True)
    except Exception:
        failed += 1
        print(f"FAILED {function.__name__}\n{traceback.format_exc()}", flush=True)
print(f"test result: {len(checks) - failed} passed; {failed} failed")
sys.exit(failed > 0)
