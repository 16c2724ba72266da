"""The rules of budgets exist twice, in Python and in Lua: what is spent must come to the same."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import redis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

import penstock
from penstock.adapters.redis.budgets import _fields, state_of
from penstock.adapters.redis.scripts import assembled
from penstock.lanes import budgets as rules
from penstock.model.budget import FOREVER, BudgetState, payers
from penstock.model.ids import new_id
from tests.support.database_servers import redis_url

RULES = Path(__file__).parents[3] / "support" / "budget_rules.lua"
LUA = Path(penstock.__file__).parent / "adapters" / "redis" / "lua" / "common" / "budgets.lua"
BEGINS = 1_800_000_000.25
LIMITS = st.none() | st.sampled_from([0, 1, 100, 10**12])
FIGURES = st.sampled_from([0, 1, 79, 80, 10**12, -1, -80, -(10**12)])
STEPS = st.lists(
    st.fixed_dictionaries(
        {
            "at": st.sampled_from([BEGINS - 0.0001, BEGINS, BEGINS + 9.0]),
            "tokens": FIGURES,
            "cost": FIGURES,
            "lane": st.sampled_from(["", "llm", "embedder"]),
        }
    ),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize("flavour", ["redis"])
@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(tokens=LIMITS, cost=LIMITS, over=st.booleans(), steps=STEPS)
def test_lua_and_python_budget_rules_come_to_the_same(
    flavour: str,
    tokens: int | None,
    cost: int | None,
    over: bool,
    steps: list[dict[str, float | str]],
) -> None:
    ends = BEGINS if over else FOREVER
    state = BudgetState("tenant:a", tokens, cost, "day", "UTC", BEGINS, ends)
    tag = f"{{{new_id()}}}"
    with redis.Redis.from_url(redis_url(flavour), decode_responses=True) as server:
        server.hset(f"{tag}:budget:tenant:a", mapping=_fields(state))
        now = int(server.time()[0])
        state.ends = now - 1.0 if over else FOREVER
        server.hset(f"{tag}:budget:tenant:a", "ends", f"{state.ends:.17g}")
        shebang, needs, text = ("#!lua", *RULES.read_text().split("\n", 1))
        script = assembled(shebang, needs.removeprefix("-- needs: "), text)
        told = server.eval(script, 1, tag, json.dumps({"steps": steps}))
        server.delete(f"{tag}:budget:tenant:a")
    for step, (warned, reached, closed, first, (payer, flat)) in zip(steps, told, strict=True):
        at, lane = float(step["at"]), str(step["lane"])
        rules.spend(state, at, int(step["tokens"]), int(step["cost"]), lane)
        expected = (rules.warns(state), state.reached, state.closed(now))
        assert (bool(warned), bool(reached), bool(closed)) == expected, step
        found = rules.first_closed({"tenant:a": state}, payers("a", "b"), now)
        assert bool(first) == (found is not None), step
        assert state_of(payer, flat) == state, step


def test_every_figure_of_the_rules_is_the_same_in_lua() -> None:
    text = LUA.read_text()
    for name in ("WARNED_AT", "LANES_MOST", "LOOK_SECONDS"):
        assert f"local {name} = {getattr(rules, name):g}\n" in text
