"""The steps that lead a node to gold, and the executor that they share."""
