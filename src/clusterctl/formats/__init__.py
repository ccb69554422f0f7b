"""One parser per foreign text. Pure: text in, dataclasses out, `ParseError` when it is not understood."""
