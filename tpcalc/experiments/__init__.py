"""Networks trained over settings, widths and depths, beside what the limit says of them."""
