"""What is measured: the cases, and the ways in which each can be run. Read by bench/run and by the peers' programs."""
from dataclasses import dataclass, replace

CLASSIFIER_WAYS = ("keras-tf", "keras-tf-spe", "keras-jax", "keras-jax-spe", "jax-jit", "jax-scan", "torch", "torch-compile")
CALL_WAYS = ("keras-tf-call", "keras-jax-call", "jax-jit", "torch", "torch-compile")


@dataclass(frozen=True)
class Way:
    """How a peer is used: its name in the tables, the program below bench/peers, the module that must be installed."""
    title: str
    program: str
    module: str


WAYS = {
    "keras-tf": Way("Keras-TF fit", "keras_peer", "tensorflow"),
    "keras-tf-spe": Way("Keras-TF fit, steps_per_execution", "keras_peer", "tensorflow"),
    "keras-tf-call": Way("Keras-TF on_batch", "keras_peer", "tensorflow"),
    "keras-tf-predict": Way("Keras-TF predict", "keras_peer", "tensorflow"),
    "keras-tf-mirrored": Way("Keras-TF MirroredStrategy", "keras_peer", "tensorflow"),
    "keras-jax": Way("Keras-JAX fit", "keras_peer", "jax"),
    "keras-jax-spe": Way("Keras-JAX fit, steps_per_execution", "keras_peer", "jax"),
    "keras-jax-call": Way("Keras-JAX on_batch", "keras_peer", "jax"),
    "keras-jax-predict": Way("Keras-JAX predict", "keras_peer", "jax"),
    "jax-jit": Way("JAX jit", "jax_peer", "jax"),
    "jax-scan": Way("JAX lax.scan", "jax_peer", "jax"),
    "torch": Way("PyTorch eager", "torch_peer", "torch"),
    "torch-compile": Way("PyTorch compile", "torch_peer", "torch"),
    "torch-float32": Way("PyTorch eager, float32", "torch_peer", "torch"),
    "torch-compile-float32": Way("PyTorch compile, float32", "torch_peer", "torch"),
}
FLOAT32_WAYS = ("torch-float32", "torch-compile-float32")  # whatever the case's precision


# Tandem itself, otherwise: on how many of the cores, and as how many devices for each core (0: "cpu", one for all).
VARIANTS = {
    "tandem-one-core": ("Tandem, 1 core", 1, 0),
    "tandem-replicas": ("Tandem, a device a core", None, 1),
    "tandem-replicas-2x": ("Tandem, 2 devices a core", None, 2),
    "tandem-replicas-4x": ("Tandem, 4 devices a core", None, 4),
}


@dataclass(frozen=True)
class Case:
    name: str
    title: str
    network: str  # bench/peers/networks.py makes it
    batch: int
    shape: tuple  # of a sample
    ways: tuple  # of the peers
    steps: int = 1  # in an epoch, which is the least that a round measures
    classes: int = 10  # 0: one number is to be learnt
    images: bool = False  # x holds bytes, as image files do; Tandem is given them so, peers floats
    digits: bool = False  # the first training images of MNIST, or of Fashion-MNIST where MNIST cannot be had; otherwise noise
    what: str = "fit"  # or "train", "predict": calls with one batch, each timed, back to back and at ticks
    devices: str = "cpu"  # Tandem's
    precision: str = "float32"
    reach: float = 0  # the ratio to the best peer that was set as the aim; 0: none
    reach_beside: tuple = ()  # the ways beside which that was set; empty: all
    together: bool = True  # all processes at once; otherwise one peer at a time beside Tandem, for want of memory


# On noise the MLP's rectified units die within some epochs, whoever trains it.
MLP = {"network": "mlp", "shape": (784,), "images": True, "digits": True, "ways": CLASSIFIER_WAYS}
RESNET = {"network": "resnet50", "batch": 8, "shape": (224, 224, 3), "classes": 1000, "images": True, "steps": 3,
          "together": False}
LSTM = {"network": "lstm", "shape": (50, 8), "classes": 0}
POLICY = {"network": "policy", "shape": (8,), "classes": 2, "ways": CALL_WAYS}
TICK = 1e-3  # seconds: of a control loop

PEERS = (
    Case("mlp", "MLP 784-256-256-10, MNIST, batch 32", batch=32, steps=500, reach=2.4, **MLP),
    Case("mlp128", "MLP 784-256-256-10, MNIST, batch 128", batch=128, steps=250, reach=1.45, **MLP),
    Case("mirrored", "MLP, batch 32, two CPU devices", batch=32, steps=400, devices="cpu:0,cpu:1",
         **dict(MLP, ways=("keras-tf-mirrored",))),
    Case("lenet5", "LeNet-5, tanh, MNIST, batch 32", "lenet5", 32, (28, 28, 1), CLASSIFIER_WAYS, steps=200, images=True,
         digits=True, reach=8),
    Case("cifar", "CNN 32-64-64 on CIFAR-10, batch 32", "cifar", 32, (32, 32, 3), CLASSIFIER_WAYS, steps=30, images=True,
         reach=2.6),
    Case("cifar-train", "that CNN, train_on_batch, one image", batch=1, what="train", network="cifar",
         shape=(32, 32, 3), ways=CALL_WAYS, images=True),
    Case("resnet50", "ResNet-50, 224x224, batch 8", reach=1.55,
         ways=("keras-tf", "keras-jax", "torch", "torch-compile"), **RESNET),
    Case("resnet50-bf16", "ResNet-50, 224x224, batch 8, bf16", precision="bfloat16", reach=2.3,
         reach_beside=FLOAT32_WAYS, ways=("keras-tf", "keras-jax", "torch", "torch-compile", *FLOAT32_WAYS), **RESNET),
    Case("resnet50-predict", "that ResNet-50, predict, one image", what="predict",
         ways=("keras-tf-call", "keras-jax-call", "torch", "torch-compile"), **dict(RESNET, batch=1, steps=1)),
    Case("resnet50-train", "that ResNet-50, train_on_batch, one image", what="train",
         ways=("keras-tf-call", "keras-jax-call", "torch", "torch-compile"), **dict(RESNET, batch=1, steps=1)),
    Case("lstm", "LSTM 128, 50 steps of 8, batch 1", batch=1, steps=400, ways=CLASSIFIER_WAYS, reach=4.3, **LSTM),
    Case("lstm32", "LSTM 128, 50 steps of 8, batch 32", batch=32, steps=100, ways=CLASSIFIER_WAYS, reach=1.75, **LSTM),
    Case("lstm-train", "that LSTM, train_on_batch, one sample", batch=1, what="train", ways=CALL_WAYS, **LSTM),
    Case("lstm-predict", "that LSTM, predict, one sample", batch=1, what="predict", reach=4.7,
         ways=CALL_WAYS + ("keras-tf-predict", "keras-jax-predict"), **LSTM),
    Case("policy-train", "policy 8-64-64-2, train_on_batch, 32", batch=32, what="train", **POLICY),
    Case("policy-predict", "that policy, predict, one sample", batch=1, what="predict", **POLICY),
)
SCALING = tuple(replace(case, name=f"scaling-{case.name}", title=f"Tandem's scaling: {case.title}", ways=tuple(VARIANTS), reach=0)
                for case in PEERS if case.name in ("mlp", "mlp128", "lenet5", "cifar", "lstm32"))
CASES = {case.name: case for case in PEERS + SCALING}

# Ways that --quick leaves out, since another is the best peer: everywhere, and of the large network.
SLOW_WAYS = {"keras-tf", "keras-jax", "keras-tf-predict", "keras-jax-predict"}
SLOW_LARGE_WAYS = SLOW_WAYS | {"keras-jax-call"}
QUICK_CASES = [case.name for case in PEERS if case.name not in ("lstm-train", "policy-train")]


def is_quick(case, way):
    return way not in (SLOW_WAYS if case.together else SLOW_LARGE_WAYS)
