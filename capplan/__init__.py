"""Capacity planner and roofline calculator for LLM serving."""
