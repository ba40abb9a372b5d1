"""What was asked last is answered from memory, and no more than that is kept."""

from dashboard.recent import Recent


def test_the_same_question_is_answered_once_until_others_push_it_out() -> None:
    asked: list[str] = []
    recent: Recent[str] = Recent(2)

    def ask(question: str) -> str:
        answer = recent.get(question, lambda: asked.append(question) or question.upper())  # type: ignore[func-returns-value]
        recent.check()
        return answer

    assert [ask(question) for question in "aabab"] == list("AABAB")
    assert asked == ["a", "b"]
    ask("c")  # pushes a out, which was asked before b
    ask("b")
    ask("a")
    assert asked == ["a", "b", "c", "a"]


def test_what_is_kept_anew_takes_the_place_of_what_was_kept() -> None:
    recent: Recent[int] = Recent(2)
    for number, question in enumerate("aba"):
        recent.keep(question, number)
        recent.check()
    recent.keep("c", 3)
    assert [recent.find(question) for question in "abc"] == [2, None, 3]
