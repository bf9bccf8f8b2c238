"""What `instruction-injection-compliance` is made of: what is suspect, what a judge is asked."""
