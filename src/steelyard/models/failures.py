"""What can go wrong on the wire, by its own name."""

from __future__ import annotations


class ConnectionFailed(Exception):
    """No answer came: refused, reset, cut off, or not HTTP."""


class CertificateRefused(ConnectionFailed):
    """The server's certificate is not trusted; trying again helps nobody."""


class TooLarge(Exception):
    """The answer is larger than it may be; the rest was not read."""


def connection_failed(error: Exception) -> ConnectionFailed:
    """Name what a transport raised."""
    import ssl

    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return CertificateRefused(f"its certificate is not trusted: {cause.verify_message}")
        cause = cause.__cause__ or cause.__context__
    return ConnectionFailed(str(error) or type(error).__name__)
