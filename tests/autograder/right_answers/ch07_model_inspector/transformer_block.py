"""Right blocks: from torch's parts, with an attention of one's own, and in functions with masks made additive."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import nn


class FromParts(nn.Module):
    """The seven modules that torch uses, in the order of its printout."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, norm_first=False):
        super().__init__()
        self.norm_first = norm_first
        self.self_attn = nn.MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=True)
        self.linear1, self.linear2 = nn.Linear(d_model, dim_feedforward), nn.Linear(dim_feedforward, d_model)
        self.norm1, self.norm2 = nn.LayerNorm(d_model), nn.LayerNorm(d_model)
        self.dropout, self.dropout1, self.dropout2 = nn.Dropout(dropout), nn.Dropout(dropout), nn.Dropout(dropout)

    def attend(self, x, mask):
        attended, _ = self.self_attn(x, x, x, attn_mask=mask)
        return self.dropout1(attended)

    def feed(self, x):
        return self.dropout2(self.linear2(self.dropout(self.linear1(x).relu())))

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.attend(self.norm1(x), mask)
            return x + self.feed(self.norm2(x))
        x = self.norm1(x + self.attend(x, mask))
        return self.norm2(x + self.feed(x))


class _Attention(nn.Module):
    def __init__(self, width, heads, dropout):
        super().__init__()
        self.heads, self.p = heads, dropout
        self.in_proj_weight = nn.Parameter(torch.randn(3 * width, width) / math.sqrt(width))
        self.in_proj_bias = nn.Parameter(torch.zeros(3 * width))
        self.out_proj = nn.Linear(width, width)

    def forward(self, x, mask):
        rows, length, width = x.shape
        parts = F.linear(x, self.in_proj_weight, self.in_proj_bias).view(rows, length, 3, self.heads, -1)
        query, key, value = parts.permute(2, 0, 3, 1, 4)
        if mask is not None and mask.dtype == torch.bool:
            mask = ~mask
        p = self.p if self.training else 0.0
        mixed = F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=p)
        return self.out_proj(mixed.transpose(1, 2).reshape(rows, length, width))


class OwnAttention(nn.Module):
    """An attention module of its own, over torch's fused function, whose boolean mask has the other sense."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, norm_first=False):
        super().__init__()
        self.self_attn = _Attention(d_model, nhead, dropout)
        self.norm2 = nn.LayerNorm(d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        self.drop = nn.Dropout(dropout)
        self.order = "before" if norm_first else "after"

    def around(self, x, norm, branch):
        """One residual path, whichever side the norm is on."""
        if self.order == "before":
            return x + self.drop(branch(norm(x)))
        return norm(x + self.drop(branch(x)))

    def forward(self, x, mask=None):
        x = self.around(x, self.norm1, lambda h: self.self_attn(h, mask))
        return self.around(x, self.norm2, lambda h: self.linear2(self.drop(F.relu(self.linear1(h)))))


class InFunctions(nn.Module):
    """Bare parameters under torch's names, einsum for the attention, every mask made additive first."""

    def __init__(self, d_model, nhead, dim_feedforward, dropout=0.1, norm_first=False):
        super().__init__()
        self.sizes, self.p, self.norm_first = (nhead, d_model // nhead), dropout, norm_first
        shapes = {
            "self_attn": {"in_proj_weight": (3 * d_model, d_model), "in_proj_bias": (3 * d_model,)},
            "linear1": {"weight": (dim_feedforward, d_model), "bias": (dim_feedforward,)},
            "linear2": {"weight": (d_model, dim_feedforward), "bias": (d_model,)},
            "norm1": {"weight": (d_model,), "bias": (d_model,)},
            "norm2": {"weight": (d_model,), "bias": (d_model,)},
        }
        for place, parameters in shapes.items():
            holder = nn.Module()
            for name, shape in parameters.items():
                holder.register_parameter(name, nn.Parameter(torch.randn(shape) * 0.1))
            setattr(self, place, holder)
        self.self_attn.out_proj = nn.Linear(d_model, d_model)

    def dropped(self, x):
        return x * torch.empty_like(x).bernoulli_(1 - self.p) / (1 - self.p) if self.training and self.p else x

    def normed(self, x, holder):
        centred = x - x.mean(-1, keepdim=True)
        return centred / (centred.square().mean(-1, keepdim=True) + 1e-5).sqrt() * holder.weight + holder.bias

    def attended(self, x, mask):
        query, key, value = (
            (x @ weight.T + bias).unflatten(-1, self.sizes)
            for weight, bias in zip(
                self.self_attn.in_proj_weight.chunk(3), self.self_attn.in_proj_bias.chunk(3), strict=True
            )
        )
        scores = torch.einsum("nqhd,nkhd->nhqk", query, key) / math.sqrt(self.sizes[1])
        if mask is not None:
            scores = scores + (
                torch.zeros_like(scores).masked_fill(mask, -math.inf) if mask.dtype == torch.bool else mask
            )
        mixed = torch.einsum("nhqk,nkhd->nqhd", self.dropped(scores.softmax(-1)), value)
        return self.dropped(self.self_attn.out_proj(mixed.flatten(-2)))

    def fed(self, x):
        hidden = self.dropped(F.linear(x, self.linear1.weight, self.linear1.bias).clamp(min=0))
        return self.dropped(F.linear(hidden, self.linear2.weight, self.linear2.bias))

    def forward(self, x, mask=None):
        if self.norm_first:
            x = x + self.attended(self.normed(x, self.norm1), mask)
            return x + self.fed(self.normed(x, self.norm2))
        x = self.normed(x + self.attended(x, mask), self.norm1)
        return self.normed(x + self.fed(x), self.norm2)


right_answers = [(FromParts,), (OwnAttention,), (InFunctions,)]
