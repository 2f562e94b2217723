"""The page of a result: facts, sections, and HTML in which everything is escaped unless made here."""
