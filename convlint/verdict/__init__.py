"""What the user decided about findings: selection, suppressions, baseline, exit code."""
