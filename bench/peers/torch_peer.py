"""PyTorch, eager or compiled: fused Adam, channels last, rows gathered by a random permutation."""
import os

import peer
import torch
from harness.cases import FLOAT32_WAYS
from torch import nn

case, way, _ = peer.arguments()
torch.set_flush_denormal(True)  # as TensorFlow, JAX and Tandem do: Adam's averages of dead units take it twice as long
torch.set_num_threads(len(os.sched_getaffinity(0)))


class Lstm(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.dense = nn.LSTM(8, 128, batch_first=True), nn.Linear(128, 1)

    def forward(self, x):
        return self.dense(self.lstm(x)[0][:, -1])


class Block(nn.Module):
    """Keras's bottleneck: the stride is in the first convolution, convolutions have biases."""

    def __init__(self, inputs, width, stride, project):
        super().__init__()

        def unit(i, o, kernel, stride=1):
            return nn.Sequential(nn.Conv2d(i, o, kernel, stride, kernel // 2), nn.BatchNorm2d(o, 1.001e-5, 0.01))

        self.body = nn.Sequential(unit(inputs, width, 1, stride), nn.ReLU(True), unit(width, width, 3), nn.ReLU(True),
                                  unit(width, 4 * width, 1))
        self.shortcut = unit(inputs, 4 * width, 1, stride) if project else nn.Identity()
        self.relu = nn.ReLU(True)

    def forward(self, x):
        return self.relu(self.body(x) + self.shortcut(x))


def resnet50():
    layers = [nn.Conv2d(3, 64, 7, 2, 3), nn.BatchNorm2d(64, 1.001e-5, 0.01), nn.ReLU(True), nn.MaxPool2d(3, 2, 1)]
    inputs = 64
    for stage, (width, blocks) in enumerate(((64, 3), (128, 4), (256, 6), (512, 3))):
        for block in range(blocks):
            layers.append(Block(inputs, width, 2 if stage and not block else 1, not block))
            inputs = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


NETWORKS = {
    "mlp": lambda: nn.Sequential(nn.Linear(784, 256), nn.ReLU(), nn.Linear(256, 256), nn.ReLU(), nn.Linear(256, 10)),
    "lenet5": lambda: nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.Tanh(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.Tanh(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.Tanh(), nn.Linear(120, 84), nn.Tanh(), nn.Linear(84, 10)),
    "cifar": lambda: nn.Sequential(
        nn.Conv2d(3, 32, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(32, 64, 3), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(64, 64, 3), nn.ReLU(), nn.Flatten(), nn.Linear(1024, 64), nn.ReLU(), nn.Linear(64, 10)),
    "resnet50": resnet50,
    "lstm": Lstm,
    "policy": lambda: nn.Sequential(nn.Linear(8, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 2)),
}
IMAGES = len(case.shape) == 3

model = NETWORKS[case.network]()
if IMAGES:
    model = model.to(memory_format=torch.channels_last)
optimizer = torch.optim.Adam(model.parameters(), lr=1e-3, eps=1e-7, fused=True)
loss = nn.CrossEntropyLoss() if case.classes else nn.MSELoss()


def loss_of(x, y):
    if case.precision == "bfloat16" and way not in FLOAT32_WAYS:
        with torch.autocast("cpu", torch.bfloat16):
            return loss(model(x), y)
    return loss(model(x), y)


forward = model
if way.startswith("torch-compile"):
    loss_of = torch.compile(loss_of)
    forward = torch.compile(model)


def train(x, y):
    optimizer.zero_grad(set_to_none=True)
    value = loss_of(x, y)
    value.backward()
    optimizer.step()
    return value


def data(batches):
    x, y = (torch.from_numpy(array) for array in peer.data(case, batches))
    if IMAGES:
        x = x.permute(0, 3, 1, 2)  # in memory as it was: channels last
    return x, y.long() if case.classes else y


def parameters():
    """An LSTM of PyTorch adds two biases, which is one too many to compare."""
    return sum(value.numel() for name, value in model.named_parameters() if "bias_hh" not in name)


def first_step():
    train(*data(1))


def make_epoch():
    x, y = data(case.steps)

    def epoch():
        for rows in torch.randperm(len(x)).split(case.batch):
            train(x[rows], y[rows])

    return epoch


def make_call():
    x, y = data(1)
    if case.what == "train":
        return lambda: float(train(x, y).detach())

    model.eval()

    def predict():
        with torch.inference_mode():
            return forward(x)

    return predict


if __name__ == "__main__":
    if case.what == "fit":
        peer.serve_epochs(case, parameters, first_step, make_epoch)
    else:
        peer.serve_calls(parameters, make_call())
