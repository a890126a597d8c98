"""How bits rise as money is paid on and on: the experiment of the paper's appendix."""
