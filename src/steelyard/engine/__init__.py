"""The life of an attempt: admission, execution, deadlines, cancellation, events."""
