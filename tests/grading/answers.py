"""Five submissions as they really arrive: what a student wrote into each answer cell."""

from __future__ import annotations

RIGHT_BATCHNORM = """
class MyBatchNorm(nn.Module):
    def __init__(self, num_features, eps=1e-5, momentum=0.1):
        super().__init__()
        self.eps = eps
        self.momentum = momentum
        self.weight = nn.Parameter(torch.ones(num_features))
        self.bias = nn.Parameter(torch.zeros(num_features))
        self.register_buffer("running_mean", torch.zeros(num_features))
        self.register_buffer("running_var", torch.ones(num_features))
        self.register_buffer("num_batches_tracked", torch.tensor(0, dtype=torch.long))

    def forward(self, x):
        channels_last = x if x.dim() == 2 else x.transpose(1, 2)
        rows = channels_last.reshape(-1, channels_last.shape[-1])
        if self.training:
            if len(rows) == 1:
                raise ValueError("need more than one value per channel")
            mean = rows.mean(0)
            var = rows.var(0, unbiased=False)
            with torch.no_grad():
                self.num_batches_tracked += 1
                m = self.momentum if self.momentum is not None else 1 / self.num_batches_tracked.item()
                self.running_mean.mul_(1 - m).add_(m * mean)
                self.running_var.mul_(1 - m).add_(m * rows.var(0, unbiased=True))
        else:
            mean, var = self.running_mean, self.running_var
        out = (channels_last - mean) / (var + self.eps).sqrt() * self.weight + self.bias
        return out if x.dim() == 2 else out.transpose(1, 2)
""".strip()

BIASED_BATCHNORM = RIGHT_BATCHNORM.replace("m * rows.var(0, unbiased=True)", "m * var")

RIGHT_DROPOUT = """
class MyDropout(nn.Module):
    def __init__(self, p=0.5):
        super().__init__()
        if p < 0 or p > 1:
            raise ValueError("dropout probability must be between 0 and 1")
        self.p = p

    def forward(self, x):
        if not self.training or self.p == 0:
            return x
        if self.p == 1:
            return x * 0
        mask = (torch.rand_like(x) >= self.p).to(x.dtype)
        return x * mask / (1 - self.p)
""".strip()

UNSCALED_DROPOUT = RIGHT_DROPOUT.replace("x * mask / (1 - self.p)", "x * mask")

RIGHT_CHECKPOINT = """
def save_checkpoint(path, model, optimizer, scheduler, epoch):
    torch.save({
        "model": model.state_dict(),
        "optimizer": optimizer.state_dict(),
        "scheduler": scheduler.state_dict(),
        "epoch": epoch,
        "rng": torch.get_rng_state(),
        "cuda_rng": torch.cuda.get_rng_state_all(),
        "python_rng": random.getstate(),
    }, path)


def load_checkpoint(path, model, optimizer, scheduler):
    checkpoint = torch.load(path, map_location="cpu")
    model.load_state_dict(checkpoint["model"])
    optimizer.load_state_dict(checkpoint["optimizer"])
    scheduler.load_state_dict(checkpoint["scheduler"])
    torch.set_rng_state(checkpoint["rng"])
    torch.cuda.set_rng_state_all(checkpoint["cuda_rng"])
    random.setstate(checkpoint["python_rng"])
    return checkpoint["epoch"] + 1
""".strip()

# A cell that stops while it is run: the class is never defined.
RAISING_CELL = RIGHT_BATCHNORM + "\n\nlayer = MyBatchNorm(3)\nprint(layer.runing_mean)\n"
BROKEN_DROPOUT = RIGHT_DROPOUT.replace("mask = (torch", "mask = (toorch")

IMPORT_RANDOM = "import random\n\n"

SUBMISSIONS: dict[str, dict[str, str]] = {
    "ada_all_right": {
        "my_batchnorm": RIGHT_BATCHNORM,
        "my_dropout": RIGHT_DROPOUT,
        "save_and_resume": IMPORT_RANDOM + RIGHT_CHECKPOINT,
    },
    "ben_untouched": {},
    "cleo_biased_running_var": {
        "my_batchnorm": BIASED_BATCHNORM,
        "my_dropout": RIGHT_DROPOUT,
        "save_and_resume": IMPORT_RANDOM + RIGHT_CHECKPOINT,
    },
    "dan_dropout_without_scaling": {
        "my_batchnorm": RIGHT_BATCHNORM,
        "my_dropout": UNSCALED_DROPOUT,
        "save_and_resume": IMPORT_RANDOM + RIGHT_CHECKPOINT,
    },
    "eva_a_cell_that_raises": {
        "my_batchnorm": RAISING_CELL,
        "my_dropout": BROKEN_DROPOUT,
        "save_and_resume": IMPORT_RANDOM + RIGHT_CHECKPOINT,
    },
}
