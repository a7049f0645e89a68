"""The counter of tokens: what it says of a text, and how far its estimate is off from o200k."""

import json
from time import process_time

import pytest

from dragoman.tokens import count_tokens, estimated_tokens
from patience import patient
from public_data import TOOL_SEARCH

# Counted by o200k_base, of name, description and inputSchema as compact JSON in this order.
O200K = {"mcpproxy": 2_231, "metatool": 6_318, "bfcl": 356_016, "restbench": 10_098}


@pytest.mark.parametrize("name", O200K)
def test_the_estimate_of_a_whole_catalog_is_at_most_seven_percent_off(name: str) -> None:
    tools = [json.loads(line) for line in (TOOL_SEARCH / name / "tools.jsonl").read_text().splitlines()]
    fields = {"name": "name", "description": "description", "inputSchema": "schema"}
    texts = (
        json.dumps({to: tool[of] for to, of in fields.items()}, separators=(",", ":"), ensure_ascii=False)
        for tool in tools
    )
    assert sum(estimated_tokens(text.encode()) for text in texts) == pytest.approx(O200K[name], rel=0.07)


def test_text_and_its_bytes_count_the_same_and_nothing_counts_nothing() -> None:
    assert count_tokens("") == count_tokens(b"") == 0
    text = "Send an email to Zoë, 東京 and 12345 others."
    assert count_tokens(text) == count_tokens(text.encode()) > 8
    assert count_tokens("half \ud800 a character") > 0


def test_a_very_long_text_is_sampled_and_takes_no_longer() -> None:
    line = b'{"name":"send_message","to":["ada@example.com"],"size":1234}\n'
    since = process_time()
    many = count_tokens(line * 200_000)
    assert process_time() - since < patient(0.2)
    assert many == pytest.approx(count_tokens(line) * 200_000, rel=0.1)
