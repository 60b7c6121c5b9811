"""What all floors share: tables between stages, errors, files, the device, digests of code."""
