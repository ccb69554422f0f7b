"""NetBox's REST answers → records, and records → the rows of a site. Everything is hostile until it was validated."""
