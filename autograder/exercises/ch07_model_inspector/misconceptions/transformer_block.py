"""Wrong Transformer blocks. Each changes one decision of a block that is otherwise torch's."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import nn

from autograder.exercise import Misconception


class _Block(nn.Module):
    """The decisions, one method each, so that a misconception can get exactly one of them wrong."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float = 0.1, norm_first: bool = False
    ) -> None:
        super().__init__()
        self.nhead, self.p, self.norm_first = nhead, dropout, norm_first
        # Holds the attention's parameters under torch's names; what is done with them is written out below.
        self.self_attn = nn.MultiheadAttention(d_model, nhead, batch_first=True)
        self.linear1 = nn.Linear(d_model, dim_feedforward)
        self.linear2 = nn.Linear(dim_feedforward, d_model)
        self.norm1 = nn.LayerNorm(d_model)
        self.norm2 = nn.LayerNorm(d_model)

    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        if self.norm_first:
            x = self.add(x, self.attend(self.norm1(x), mask))
            return self.add_second(x, self.feed(self.second_norm(x)))
        x = self.norm1(self.add(x, self.attend(x, mask)))
        return self.second_norm(self.add_second(x, self.feed(x)))

    def second_norm(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm2(x)

    def add(self, x: torch.Tensor, branch: torch.Tensor) -> torch.Tensor:
        return x + branch

    def add_second(self, x: torch.Tensor, branch: torch.Tensor) -> torch.Tensor:
        return x + branch

    def drop(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, self.p, self.training)

    def drop_inside(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(x)

    def activation(self, x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x)

    def feed(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.linear2(self.drop_inside(self.activation(self.linear1(x)))))

    def attend(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        together = F.linear(x, self.self_attn.in_proj_weight, self.self_attn.in_proj_bias)
        query, key, value = (self.split(part) for part in together.chunk(3, dim=-1))
        scores = self.masked(query @ key.transpose(-2, -1) / self.scale(x, query), mask)
        mixed = self.drop_inside(scores.softmax(-1)) @ value
        return self.drop(self.self_attn.out_proj(self.merge(mixed)))

    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.unflatten(-1, (self.nhead, -1)).transpose(1, 2)

    def merge(self, x: torch.Tensor) -> torch.Tensor:
        return x.transpose(1, 2).flatten(2)

    def scale(self, x: torch.Tensor, query: torch.Tensor) -> float:
        return query.shape[-1] ** 0.5

    def masked(self, scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        if mask is None:
            return scores
        return scores.masked_fill(mask, -torch.inf) if mask.dtype == torch.bool else scores + mask


class AlwaysNormFirst(_Block):
    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        self.norm_first = True
        return super().forward(x, mask)


class AlwaysNormAfter(_Block):
    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        self.norm_first = False
        return super().forward(x, mask)


class NormedResidual(_Block):
    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None) -> torch.Tensor:
        if not self.norm_first:
            return super().forward(x, mask)
        x = self.norm1(x)
        x = self.norm2(x + self.attend(x, mask))
        return x + self.feed(x)


class OneResidual(_Block):
    def add_second(self, x: torch.Tensor, branch: torch.Tensor) -> torch.Tensor:
        return branch


class OneNormTwice(_Block):
    def second_norm(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm1(x)


class ResidualInPlace(_Block):
    def add(self, x: torch.Tensor, branch: torch.Tensor) -> torch.Tensor:
        x += branch
        return x


class Gelu(_Block):
    def activation(self, x: torch.Tensor) -> torch.Tensor:
        return F.gelu(x)


class MaskInverted(_Block):
    def masked(self, scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        boolean = mask is not None and mask.dtype == torch.bool
        return super().masked(scores, ~mask if boolean else mask)


class MaskIgnored(_Block):
    def masked(self, scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        return scores


class MaskMultiplied(_Block):
    def masked(self, scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        boolean = mask is not None and mask.dtype == torch.bool
        return scores * ~mask if boolean else super().masked(scores, mask)


class FloatMaskTakenForBoolean(_Block):
    def masked(self, scores: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        return super().masked(
            scores, None if mask is None else mask.bool() & ~torch.eye(len(mask)).bool().to(mask.device)
        )


class NotScaled(_Block):
    def scale(self, x: torch.Tensor, query: torch.Tensor) -> float:
        return 1.0


class ScaledByTheWholeWidth(_Block):
    def scale(self, x: torch.Tensor, query: torch.Tensor) -> float:
        return x.shape[-1] ** 0.5


class HeadsCutAcross(_Block):
    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], self.nhead, x.shape[1], -1)

    def merge(self, x: torch.Tensor) -> torch.Tensor:
        return x.reshape(x.shape[0], x.shape[2], -1)


class OneHead(_Block):
    def split(self, x: torch.Tensor) -> torch.Tensor:
        return x[:, None]


class _OfParts(_Block):
    """The way most people write it: torch's attention and three dropouts are the parts."""

    def __init__(
        self, d_model: int, nhead: int, dim_feedforward: int, dropout: float = 0.1, norm_first: bool = False
    ) -> None:
        super().__init__(d_model, nhead, dim_feedforward, dropout, norm_first)
        self.self_attn = self.attention(d_model, nhead, dropout)

    def attention(self, d_model: int, nhead: int, dropout: float) -> nn.Module:
        return nn.MultiheadAttention(d_model, nhead, dropout=dropout, batch_first=True)

    def attend(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        return self.drop(self.self_attn(x, x, x, attn_mask=mask)[0])


class AttendsAcrossTheBatch(_OfParts):
    def attention(self, d_model: int, nhead: int, dropout: float) -> nn.Module:
        return nn.MultiheadAttention(d_model, nhead, dropout=dropout)


class OneDropoutInAttention(_OfParts):
    def attention(self, d_model: int, nhead: int, dropout: float) -> nn.Module:
        return nn.MultiheadAttention(d_model, nhead, batch_first=True)


class OneDropoutInFeedForward(_Block):
    def feed(self, x: torch.Tensor) -> torch.Tensor:
        return self.drop(self.linear2(self.activation(self.linear1(x))))


class EveryMaskInverted(_OfParts):
    def attend(self, x: torch.Tensor, mask: torch.Tensor | None) -> torch.Tensor:
        return super().attend(x, None if mask is None else ~mask)


class DropoutAtTheEndsOnly(_Block):
    def drop_inside(self, x: torch.Tensor) -> torch.Tensor:
        return x


class DropoutInEval(_Block):
    def drop(self, x: torch.Tensor) -> torch.Tensor:
        return F.dropout(x, self.p)


def _misconception(name: str, made: type, rejected_by: str, summary: str, question: str, read: str) -> Misconception:
    return Misconception(name, summary, question, read, rejected_by, (made,))


misconceptions = (
    _misconception(
        "always_norm_first",
        AlwaysNormFirst,
        "output in eval mode",
        "the norm always comes before the branch",
        "With torch's default, what are mean and variance of one position of the output? And of yours?",
        "the section «Norm before, norm after» in this chapter",
    ),
    _misconception(
        "always_norm_after",
        AlwaysNormAfter,
        "output in eval mode",
        "norm_first is accepted and ignored",
        "Set all weights of both branches to zero. What does a block with the norm first return for x, and yours?",
        "the section «Norm before, norm after» in this chapter",
    ),
    _misconception(
        "normed_residual",
        NormedResidual,
        "output in eval mode",
        "with the norm first, the normed values are what the branch is added to",
        "Set all weights of both branches to zero. With the norm first, should the block return x, or the norm of x?",
        "the section «Norm before, norm after» in this chapter",
    ),
    _misconception(
        "one_residual",
        OneResidual,
        "output in eval mode",
        "what the feed-forward branch returns is not added to anything",
        "How many times does an input come back in between the start and the end of a block? How many times in yours?",
        "the section «Shapes along a residual path» in this chapter",
    ),
    _misconception(
        "one_norm_twice",
        OneNormTwice,
        "output in eval mode",
        "the first norm is used in both places, the second never",
        "Inspect your block. Which row has two calls, and which has none?",
        "the section «Two models that print alike» in this chapter",
    ),
    _misconception(
        "residual_in_place",
        ResidualInPlace,
        "output with a boolean mask",
        "the branch is added into the tensor that was passed in",
        "Call the block twice with the same tensor. Is the tensor still the same, and are the two outputs?",
        "the section «Shapes along a residual path» in this chapter",
    ),
    _misconception(
        "gelu",
        Gelu,
        "output in eval mode",
        "GELU instead of ReLU",
        "Which activation does `nn.TransformerEncoderLayer` use when you name none?",
        "the signature of nn.TransformerEncoderLayer",
    ),
    _misconception(
        "mask_inverted",
        MaskInverted,
        "output with a boolean mask",
        "True in the mask taken for «may look»",
        "In a causal mask for this exercise, is the place above the diagonal True or False? Two functions of torch "
        "answer differently: which one are you using?",
        "the section «A mask, and what True means» in this chapter",
    ),
    _misconception(
        "every_mask_inverted",
        EveryMaskInverted,
        "output with a boolean mask",
        "every mask is turned round, a float one included",
        "What does the attention that you call take True for, and what should a float mask be turned into?",
        "the section «A mask, and what True means» in this chapter",
    ),
    _misconception(
        "mask_ignored",
        MaskIgnored,
        "output with a boolean mask",
        "the mask is accepted and not used",
        "Change the last position of the input under a causal mask. Which rows of the output may change, and which "
        "do in yours?",
        "the section «A mask, and what True means» in this chapter",
    ),
    _misconception(
        "mask_multiplied",
        MaskMultiplied,
        "output with a boolean mask",
        "closed places get the score 0 instead of no weight",
        "What weight does softmax give to a score of 0, next to another score of 0?",
        "the section «A mask, and what True means» in this chapter",
    ),
    _misconception(
        "float_mask_taken_for_boolean",
        FloatMaskTakenForBoolean,
        "output with a float mask",
        "a float mask is turned into a boolean one",
        "A float mask holds 0.5 in one place. Should that place lose all its weight, or gain some?",
        "the section «A mask, and what True means» in this chapter",
    ),
    _misconception(
        "not_scaled",
        NotScaled,
        "output in eval mode",
        "the scores are not scaled",
        "Query and key of one head have 16 standard normal values each. What is the variance of their product's sum?",
        "the section «Attention by its shapes» in this chapter",
    ),
    _misconception(
        "scaled_by_the_whole_width",
        ScaledByTheWholeWidth,
        "output in eval mode",
        "the scores are scaled by the width of the model instead of that of a head",
        "How many products are summed for one score of one head?",
        "the section «Attention by its shapes» in this chapter",
    ),
    _misconception(
        "heads_cut_across",
        HeadsCutAcross,
        "output in eval mode",
        "a reshape cuts the heads across positions instead of across features",
        "Number the features of two positions 0 to 7 and split them into two heads. Which numbers does the first "
        "head hold of the second position?",
        "the section «Attention by its shapes» in this chapter",
    ),
    _misconception(
        "one_head",
        OneHead,
        "output in eval mode",
        "all features attend together; nhead has no effect on them",
        "How many tables of attention weights does one row of the batch have with nhead heads? And in your block?",
        "the section «Attention by its shapes» in this chapter",
    ),
    _misconception(
        "attends_across_the_batch",
        AttendsAcrossTheBatch,
        "output for one row alone",
        "attention runs over the batch instead of the sequence",
        "Should the output of one row depend on which other rows are in the batch?",
        "the section «Attention by its shapes» in this chapter",
    ),
    _misconception(
        "dropout_at_the_ends_only",
        DropoutAtTheEndsOnly,
        "share kept by two dropouts in a row, feed-forward",
        "dropout at the end of each branch, and none inside",
        "How many modules of `nn.TransformerEncoderLayer` are Dropout, and which probability lives in an argument "
        "instead of a module?",
        "the section «Where the dropouts sit» in this chapter",
    ),
    _misconception(
        "one_dropout_in_attention",
        OneDropoutInAttention,
        "share kept by two dropouts in a row, attention",
        "a value of the attention branch passes one dropout instead of two",
        "A value of the attention branch passes two dropouts, one of which is an argument and no module. Which of the "
        "two has your block?",
        "the section «Where the dropouts sit» in this chapter",
    ),
    _misconception(
        "one_dropout_in_feed_forward",
        OneDropoutInFeedForward,
        "share kept by two dropouts in a row, feed-forward",
        "a value of the feed-forward branch passes one dropout instead of two",
        "A value of the feed-forward branch passes two dropouts, at the hidden values and at the end. Which of the two "
        "has your block?",
        "the section «Where the dropouts sit» in this chapter",
    ),
    _misconception(
        "dropout_in_eval",
        DropoutInEval,
        "branch in eval mode, attention",
        "dropout does not ask for the mode",
        "Call the block twice in eval mode with the same input. Are the outputs the same?",
        "the section «Where the dropouts sit» in this chapter",
    ),
)
