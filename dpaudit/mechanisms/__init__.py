"""Tests of plain mechanisms: functions of a value that draw, without tables and generators."""
