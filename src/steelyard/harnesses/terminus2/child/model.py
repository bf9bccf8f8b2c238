"""Harbor's model over the driver's: it waits, tries again, counts and keeps to the budget."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from harbor.llms.base import (
    BaseLLM,
    ContextLengthExceededError,
    LLMResponse,
    OutputLengthExceededError,
)
from harbor.models.metric import UsageInfo
from litellm.utils import get_model_info

from .link import Link

UNKNOWN_CONTEXT_TOKENS = 1_000_000
"""As harbor takes it for a model that it does not know."""


class DriverModel(BaseLLM):
    """The request's model, asked through the driver."""

    def __init__(
        self,
        link: Link,
        model_id: str,
        *,
        context_tokens: int | None,
        output_tokens: int | None,
        before_call: Callable[[], None],
    ) -> None:
        super().__init__()
        self._link = link
        self._model_id = model_id
        self._context_tokens = context_tokens
        self._output_tokens = output_tokens
        self._before_call = before_call

    async def call(
        self, prompt: str, message_history: list[dict[str, Any]] | None = None, **_more: Any
    ) -> LLMResponse:
        """Ask the model.

        Raises:
            ContextLengthExceededError: the conversation is too long for it.
            OutputLengthExceededError: the answer was cut off.
        """
        self._before_call()
        messages = [*(message_history or []), {"role": "user", "content": prompt}]
        answer = self._link.ask(
            "model",
            messages=[{"role": one["role"], "content": one["content"]} for one in messages],
        )
        if answer.get("error") == "context":
            raise ContextLengthExceededError
        if answer.get("error") == "output":
            raise OutputLengthExceededError(
                "the answer was cut off at its most tokens", truncated_response=answer["text"]
            )
        return LLMResponse(
            content=answer["text"],
            reasoning_content=answer["reasoning"],
            model_name=answer["model"],
            usage=UsageInfo(
                prompt_tokens=answer["input_tokens"],
                completion_tokens=answer["output_tokens"],
                cache_tokens=answer["cached_tokens"],
                cost_usd=0.0,  # what it costs is counted by the driver
            ),
        )

    def get_model_context_limit(self) -> int:
        """Give the most input tokens: as asked for, else as the package's own table says."""
        known = self._context_tokens or self._known("max_input_tokens")
        return known or self._known("max_tokens") or UNKNOWN_CONTEXT_TOKENS

    def get_model_output_limit(self) -> int | None:
        """Give the most output tokens; None where nobody says."""
        return self._output_tokens or self._known("max_output_tokens")

    def _known(self, name: str) -> int | None:
        try:
            info: Any = get_model_info(self._model_id)
        except Exception:  # noqa: BLE001 — whatever it raises: the model is not in the table
            return None
        found = info.get(name)
        return found if isinstance(found, int) else None
