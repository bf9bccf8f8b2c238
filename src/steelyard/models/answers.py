"""What a whole answer means: a reading, or a failure with its cause. Pure."""

from __future__ import annotations

from collections.abc import Callable

from steelyard.components.issues import AttemptFault, IssueCode
from steelyard.models.calls import Failure
from steelyard.models.protocols.form import EndpointError, Reading
from steelyard.models.refusals import Verdict, address_hint, endpoint_words, verdict
from steelyard.models.upstream import HttpAnswer

Read = Callable[[bytes], Reading]
Redact = Callable[[bytes], bytes]


def refused(answer: HttpAnswer, target: str, redact: Redact) -> Failure:
    """Name the cause of an answer that is no success.

    Args:
        answer: of a status other than 2xx.
        target: the path that was asked for.
        redact: applied to what is quoted.
    """
    words = endpoint_words(redact(answer.body))
    message = f"answered {answer.status}" + (f": {words}" if words else "")
    message += address_hint(answer.status, target)
    return Failure(verdict(answer.status, answer.body), message, answer)


def read_whole(answer: HttpAnswer, read: Read, redact: Redact) -> Reading | Failure:
    """Read a successful answer.

    Args:
        answer: of status 2xx.
        read: of its protocol.
        redact: applied to what is quoted.
    """
    try:
        return read(answer.body)
    except (EndpointError, AttemptFault):
        # What is quoted is cut, and half a secret is recognised no more: redact, read again.
        body = redact(answer.body)
    try:
        read(body)
    except EndpointError as error:
        return Failure(verdict(error.status, body), f"answered an error: {error}", answer)
    except AttemptFault as fault:
        return Failure(Verdict(fault.code), f"sent what cannot be read: {fault.message}", answer)
    invalid = Verdict(IssueCode.MODEL_RESPONSE_INVALID)
    return Failure(invalid, "sent what cannot be read", answer)
