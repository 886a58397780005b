"""Generators to audit: toys whose privacy is known, a proved PATE-GAN and six published ones."""
