"""Token estimates."""

from hypothesis import given
from hypothesis import strategies as st

from handaxe.text.tokens import estimate_tokens

ENGLISH = "The runtime reads a file, changes a few lines and tells the model what happened. "
CODE = "    def __getitem__(self, port: type[P]) -> P:\n        return self._offers[port]\n"
CHINESE = "运行时读取文件，修改几行，然后告诉模型发生了什么。"


def chars_per_token(text):
    return len(text) / estimate_tokens(text)


def test_prose_code_and_chinese_cost_what_they_usually_cost():
    assert 3.8 < chars_per_token(ENGLISH * 10) < 5.2
    assert 2.5 < chars_per_token(CODE * 10) < 4.2
    assert 0.8 < chars_per_token(CHINESE * 10) < 1.6


def test_only_the_empty_text_is_free():
    assert estimate_tokens("") == 0
    assert estimate_tokens("x") == estimate_tokens(" ") == estimate_tokens("\ud800") == 1


def test_a_sampled_text_costs_about_what_all_of_it_would():
    for piece in (ENGLISH, CODE, CHINESE):
        short, long = piece * 20, piece * 2000
        assert abs(estimate_tokens(long) / (estimate_tokens(short) * 100) - 1) < 0.05


def test_a_text_that_changes_halfway_is_sampled_on_both_sides():
    halves = ENGLISH * 500 + CHINESE * 1700
    whole = estimate_tokens(ENGLISH) * 500 + estimate_tokens(CHINESE) * 1700

    assert abs(estimate_tokens(halves) / whole - 1) < 0.25


@given(st.text(st.characters(), max_size=3000))
def test_any_text_has_an_estimate_between_nothing_and_its_bytes(text):
    assert 0 <= estimate_tokens(text) <= 3 * len(text)
    assert bool(text) == bool(estimate_tokens(text))
