"""Networks of finite width trained by mini-batch SGD on images, in torch."""
