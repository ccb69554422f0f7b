"""A cluster to rehearse on: one model of what physically exists, and the faces that render it."""
