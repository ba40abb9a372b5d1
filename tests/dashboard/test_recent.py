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
