"""What hostile peers send, and that it changes nothing for any other node."""
