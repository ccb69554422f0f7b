"""The fabric burn: routes, stages, pairs, and the verdict over each link."""
