"""What an operator, a timer or a web page orders: one module per operation.

A module that changes something has a request (a frozen dataclass), `preview(context, request)`, which changes nothing,
and `run(context, request, control)`, which acts and returns a result. A module that only reads has `read(…)`.
Requests, previews, events and results serialise to JSON (`serial.py`). No module here parses a command line, prints or
asks. `adapters.py` connects the outside systems, `compose.py` is the only place where they meet the steps.
"""
