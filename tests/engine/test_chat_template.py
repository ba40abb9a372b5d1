"""Conversations become prompts by the model's own template, which can do nothing else."""

import pytest

from engine.chat_template import ChatTemplate, ChatTemplateError
from engine.loader import LoadedModel

USER = {"role": "user", "content": "Hi"}


def test_the_bundled_models_template_writes_its_own_turns(real_model: LoadedModel) -> None:
    assert real_model.chat_template is not None
    messages = [{"role": "system", "content": "Be brief."}, USER]
    assert real_model.chat_template.render(messages) == (
        "<|im_start|>system\nBe brief.<|im_end|>\n<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n"
    )


def test_a_later_turn_only_adds_to_the_prompt_of_the_turn_before(real_model: LoadedModel) -> None:
    assert real_model.chat_template is not None
    first = real_model.chat_template.render([USER])
    second = real_model.chat_template.render([USER, {"role": "assistant", "content": "Hello."}, USER])
    assert second.startswith(first)


def test_special_tokens_and_time_are_there_for_templates_that_want_them() -> None:
    template = ChatTemplate(
        "{{ bos_token }}{{ strftime_now('%Y')|length }}{{ eos_token }}", bos_token="<s>", eos_token="!"
    )
    assert template.render([USER]) == "<s>4!"


def test_json_keeps_its_characters() -> None:
    assert ChatTemplate("{{ messages[0]|tojson }}").render([{"role": "user", "content": "é<"}]).count("é") == 1


@pytest.mark.parametrize(
    "source",
    [
        "{{ ''.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ messages.__init__.__globals__ }}",
        "{% include '/etc/passwd' %}",
        "{{ raise_exception('roles must alternate') }}",
        "{{ messages[0].content.missing.deeper }}",
        "{{ 1 + 'a' }}",
    ],
)
def test_a_template_that_reaches_out_or_fails_is_an_error_with_a_sentence(source: str) -> None:
    with pytest.raises(ChatTemplateError, match="chat template"):
        ChatTemplate(source).render([USER])


def test_a_template_that_is_no_jinja_is_refused() -> None:
    with pytest.raises(ChatTemplateError, match="not valid Jinja"):
        ChatTemplate("{% for %}")


def test_an_empty_conversation_is_refused() -> None:
    with pytest.raises(ChatTemplateError, match="expected at least one message"):
        ChatTemplate("x").render([])
