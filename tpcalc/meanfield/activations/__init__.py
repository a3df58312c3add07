"""What one activation does in wide networks: split, length and covariance kernels, calibration."""
