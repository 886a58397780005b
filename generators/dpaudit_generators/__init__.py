"""Reference generators: calibration toys whose privacy is known, and a PATE-GAN."""
