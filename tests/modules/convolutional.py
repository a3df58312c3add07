"""Networks of images: convolutions, their norms, patches and mixers."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from modules.rows import Row, floats

CLASSES = 10


class BasicBlock(nn.Module):
    def __init__(self, inp: int, out: int, stride: int = 1) -> None:
        super().__init__()
        self.conv1 = nn.Conv2d(inp, out, 3, stride, 1, bias=False)
        self.bn1 = nn.BatchNorm2d(out)
        self.conv2 = nn.Conv2d(out, out, 3, 1, 1, bias=False)
        self.bn2 = nn.BatchNorm2d(out)
        self.relu = nn.ReLU(inplace=True)
        self.downsample = None
        if stride != 1 or inp != out:
            self.downsample = nn.Sequential(
                nn.Conv2d(inp, out, 1, stride, bias=False), nn.BatchNorm2d(out)
            )

    def forward(self, x: Tensor) -> Tensor:
        identity = x if self.downsample is None else self.downsample(x)
        out = self.relu(self.bn1(self.conv1(x)))
        out = self.bn2(self.conv2(out))
        out += identity
        return self.relu(out)


class ResNet(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.stem = nn.Sequential(
            nn.Conv2d(3, n, 3, 1, 1, bias=False), nn.BatchNorm2d(n), nn.ReLU(inplace=True)
        )
        self.layer1 = BasicBlock(n, n)
        self.layer2 = BasicBlock(n, 2 * n, stride=2)
        self.fc = nn.Linear(2 * n, CLASSES)
        for m in self.modules():
            if isinstance(m, nn.Conv2d):
                nn.init.kaiming_normal_(m.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, x: Tensor) -> Tensor:
        x = self.layer2(self.layer1(self.stem(x)))
        x = F.adaptive_avg_pool2d(x, 1)
        return self.fc(torch.flatten(x, 1))


def grouped(n: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(3, n, 3, padding=1),
        nn.GroupNorm(4, n),
        nn.SiLU(),
        nn.Conv2d(n, n, 3, padding=1, groups=n),
        nn.Conv2d(n, 2 * n, 1),
        nn.GroupNorm(4, 2 * n),
        nn.SiLU(),
        nn.AvgPool2d(2),
        nn.Flatten(),
        nn.Linear(2 * n * 9, CLASSES),
    )


class ConvNeXtBlock(nn.Module):
    """Depthwise convolution, a norm with channels last, two maps, a scale for each channel."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.dwconv = nn.Conv2d(n, n, 3, padding=1, groups=n)
        self.norm = nn.LayerNorm(n, eps=1e-6)
        self.pwconv1 = nn.Linear(n, 4 * n)
        self.pwconv2 = nn.Linear(4 * n, n)
        self.gamma = nn.Parameter(1e-1 * torch.ones(n))

    def forward(self, x: Tensor) -> Tensor:
        h = self.dwconv(x).permute(0, 2, 3, 1)
        h = self.gamma * self.pwconv2(F.gelu(self.pwconv1(self.norm(h))))
        return x + h.permute(0, 3, 1, 2)


class ConvNeXt(nn.Module):
    def __init__(self, n: int) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, n, 2, stride=2)
        self.block = ConvNeXtBlock(n)
        self.norm, self.head = nn.LayerNorm(n), nn.Linear(n, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.norm(self.block(self.stem(x)).mean([-2, -1])))


class SqueezeExcite(nn.Module):
    """Channels times a gate that is made of their averages over pixels."""

    def __init__(self, n: int) -> None:
        super().__init__()
        self.conv = nn.Conv2d(3, n, 3)
        self.fc1, self.fc2 = nn.Conv2d(n, n // 4, 1), nn.Conv2d(n // 4, n, 1)
        self.head = nn.Linear(n, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = F.max_pool2d(torch.relu(self.conv(x)), 2)
        gate = torch.sigmoid(self.fc2(torch.relu(self.fc1(x.mean((2, 3), keepdim=True)))))
        return self.head((x * gate).mean((2, 3)))


class ViT(nn.Module):
    """Patches by a convolution, a class token, positions, one block of the library's attention."""

    def __init__(self, n: int, heads: int = 4, patches: int = 9) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, n, 2, stride=2)
        self.cls_token = nn.Parameter(torch.zeros(1, 1, n))
        self.pos_embed = nn.Parameter(torch.randn(1, patches + 1, n) * 0.02)
        self.norm1, self.norm2, self.norm = nn.LayerNorm(n), nn.LayerNorm(n), nn.LayerNorm(n)
        self.attn = nn.MultiheadAttention(n, heads, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
        self.head = nn.Linear(n, CLASSES)
        nn.init.normal_(self.cls_token, std=1e-1)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat((self.cls_token.expand(x.shape[0], -1, -1), x), dim=1) + self.pos_embed
        h = self.norm1(x)
        x = x + self.attn(h, h, h, need_weights=False)[0]
        x = x + self.mlp(self.norm2(x))
        return self.head(self.norm(x)[:, 0])


class Mixer(nn.Module):
    """Maps over positions, of fixed size, and maps over channels."""

    def __init__(self, n: int, patches: int = 9, between: int = 12) -> None:
        super().__init__()
        self.patch = nn.Linear(12, n)
        self.norm1, self.norm2 = nn.LayerNorm(n), nn.LayerNorm(n)
        self.tokens = nn.Sequential(
            nn.Linear(patches, between), nn.GELU(), nn.Linear(between, patches)
        )
        self.channels = nn.Sequential(nn.Linear(n, 2 * n), nn.GELU(), nn.Linear(2 * n, n))
        self.head = nn.Linear(n, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.patch(F.unfold(x, 2, stride=2).transpose(1, 2))
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        x = x + self.channels(self.norm2(x))
        return self.head(x.mean(dim=1))


IMAGES = (floats(2, 3, 6, 6),)
ROWS = (
    Row("ResNet with BatchNorm, stride and 1x1", ResNet, IMAGES),
    Row("depthwise convolutions and GroupNorm", grouped, IMAGES),
    Row("ConvNeXt", ConvNeXt, IMAGES),
    Row("squeeze and excite", SqueezeExcite, IMAGES),
    Row("ViT", ViT, IMAGES),
    Row("MLP-Mixer", Mixer, IMAGES),
)
