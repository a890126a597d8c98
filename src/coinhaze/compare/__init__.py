"""The paper's evaluation on any ledgers: score files, tables, figures and a page."""
