"""Rules as data: the expression language, the rule files, and the names that rules may use."""
