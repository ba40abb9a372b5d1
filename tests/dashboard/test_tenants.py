"""Tenants: names that can be one, and whose blocks a request may share."""

from itertools import product

import pytest
from django.core.exceptions import ValidationError
from hypothesis import given
from hypothesis import strategies as st

from dashboard.models import ApiKey
from dashboard.tenants import COMMON, MAX_LENGTH, OTHER, check_tenant, root_salt, shown
from tests.engine.harness import make_rig

TEXTS = st.text(max_size=6)
PROMPT = range(20)


@pytest.mark.parametrize("name", ["", "a", "7", "acme", "acme-eu.prod_2", "x" * MAX_LENGTH])
def test_a_name_that_can_be_a_tenant_is_taken(name: str) -> None:
    check_tenant(name)


@pytest.mark.parametrize("name", ["-a", "Acme", "a b", "ä", "a\n", "a/b", "x" * (MAX_LENGTH + 1)])
def test_a_name_that_is_no_tenant_is_refused_in_a_sentence(name: str) -> None:
    with pytest.raises(ValueError, match="expected up to 32 lower-case letters"):
        check_tenant(name)


@pytest.mark.parametrize("name", [COMMON, OTHER])
def test_the_words_that_pages_have_for_groups_are_no_tenants(name: str) -> None:
    with pytest.raises(ValueError, match="choose another name"):
        check_tenant(name)


def test_the_model_refuses_what_is_no_tenant() -> None:
    with pytest.raises(ValidationError, match="lower-case letters"):
        ApiKey(name="a", prefix="ts-", hashed_key="h", tenant="A B").full_clean(validate_unique=False)


def test_whoever_has_no_tenant_is_shown_in_the_common_pool() -> None:
    assert (shown(""), shown("acme")) == (COMMON, "acme")


@given(TEXTS, TEXTS, TEXTS, TEXTS)
def test_only_the_same_tenant_with_the_same_salt_gets_the_same_root(
    tenant: str, salt: str, other_tenant: str, other_salt: str
) -> None:
    is_same = (tenant, salt) == (other_tenant, other_salt)
    assert (root_salt(tenant, salt) == root_salt(other_tenant, other_salt)) == is_same


def test_a_client_reaches_no_other_tenant_s_blocks_whatever_salt_it_sends() -> None:
    salts = ["", "acme", root_salt("acme", ""), root_salt("acme", "s"), "s"]
    rig = make_rig(gpu=200)
    seen: set[tuple[str, str]] = set()
    for number, pair in enumerate([*product(["", "acme", "umbrella"], salts)] * 2):
        answer = rig.submit(str(number), PROMPT, 1, salt=root_salt(*pair))
        rig.run()
        assert bool(sum(answer.usage.hit_tokens.values())) == (pair in seen), pair
        seen.add(pair)
