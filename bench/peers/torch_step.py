"""A training step in PyTorch, eager: fused Adam, channels last."""
import os

import peer
import torch
from torch import nn

architecture, samples, batch = peer.arguments()
torch.set_num_threads(len(os.sched_getaffinity(0)))
SHAPE = {"mlp": (784,), "lenet5": (1, 28, 28)}[architecture]

if architecture == "mlp":
    model = nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10))
else:
    model = nn.Sequential(nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(),
                          nn.AvgPool2d(2), nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(),
                          nn.Linear(84, 10)).to(memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7, fused=True)
loss = nn.CrossEntropyLoss()


def train(x, y):
    optimizer.zero_grad(set_to_none=True)
    loss(model(x), y).backward()
    optimizer.step()


def first_step():
    train(torch.full((batch, *SHAPE), 0.5), torch.zeros(batch, dtype=torch.int64))


def make_epoch():
    x, y = torch.rand(samples, *SHAPE), torch.randint(peer.CLASSES, (samples,))
    if len(SHAPE) == 3:
        x = x.contiguous(memory_format=torch.channels_last)

    def epoch():
        order = torch.randperm(samples)
        for i in range(0, samples - batch + 1, batch):
            rows = order[i:i + batch]
            train(x[rows], y[rows])

    return epoch


peer.serve(first_step, make_epoch, samples // batch)
