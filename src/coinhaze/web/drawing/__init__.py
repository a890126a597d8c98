"""Pictures: the flow of money, histograms, fields and curves, as SVG."""
