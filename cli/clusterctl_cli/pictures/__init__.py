"""Pictures of a fabric: what the report shows, computed as plain data that the templates only draw. Pure."""
