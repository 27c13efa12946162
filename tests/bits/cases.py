"""What is compared: each case is a list of commands, run in an empty folder that keeps what they write.

A command is one line without the word `tandem`. `@` stands for the folder of the data and of the models to begin with."""
import json
import zipfile

import data

IMAGES = "--train @/grey --validation @/grey --seed 3 --batch-size 32"  # 97 images: the last batch of each epoch has one
COLOURS = "--train @/colour.npz --validation @/colour.npz --seed 3 --batch-size 16"  # 49: likewise
SERIES = "--train @/series.npz --validation-split 9 --seed 3 --batch-size 32"  # 65 to train on: likewise
TWO = "--devices cpu:0,cpu:1"
THREE = "--devices cpu:0,cpu:1,cpu:2"


def make_data(folder):
    data.grey_images(folder / "grey", 97, 33)
    data.colour_images(folder / "colour.npz", 49, 17)
    data.series(folder / "series.npz", 74, 12, 4)
    data.series(folder / "states.npz", 40, 12, 4)
    data.series(folder / "long.npz", 40, 50, 8)
    data.classes(folder / "flat.npz", 49, (4, 3), 3)
    data.classes(folder / "small.npz", 49, (6, 6, 2), 2, one_hot=True)
    data.table(folder / "table.csv", 90)
    data.text(folder / "text.txt", 700)


def edit(source, target, change):
    """Another model: `change` is given the configuration of a .keras file."""
    with zipfile.ZipFile(source) as old, zipfile.ZipFile(target, "w") as new:
        for name in old.namelist():
            held = old.read(name)
            if name == "config.json":
                config = json.loads(held)
                change(config)
                held = json.dumps(config).encode()
            new.writestr(name, held)


def layers_of(config, class_name):
    return [layer for layer in config["config"]["layers"] if layer["class_name"] == class_name]


def synchronize(config):
    for layer in layers_of(config, "BatchNormalization"):
        layer["config"]["synchronized"] = True


def make_stateful(config):
    """The states are kept from batch to batch, which have 4 rows each."""
    layers_of(config, "InputLayer")[0]["config"]["batch_shape"][0] = 4
    for layer in layers_of(config, "LSTM"):
        layer["config"].update(stateful=True)


def drop_in_lstm(config):
    for layer in layers_of(config, "LSTM"):
        layer["config"].update(dropout=0.2, recurrent_dropout=0.1)


def use_mixed_bfloat16(config):
    for layer in config["config"]["layers"]:
        if layer["class_name"] != "InputLayer":
            layer["config"]["dtype"] = {"module": "keras", "class_name": "DTypePolicy",
                                        "config": {"name": "mixed_bfloat16"}, "registered_name": None}


def drop_between(config):
    """Dropout before each Dense layer but the first, of a Sequential model."""
    layers, made = config["config"]["layers"], []
    for layer in layers:
        if layer["class_name"] == "Dense" and made and made[-1]["class_name"] != "InputLayer":
            shape = layer["build_config"]["input_shape"]
            made.append({"module": "keras.layers", "class_name": "Dropout", "registered_name": None,
                         "config": {"name": f"dropout_{len(made)}", "trainable": True, "dtype": "float32", "rate": 0.25,
                                    "seed": None, "noise_shape": None},
                         "build_config": {"input_shape": shape}})
        made.append(layer)
    config["config"]["layers"] = made


NEW = {"mlp": "mlp", "lenet5": "lenet5", "cifar": "cifar", "resnet20": "resnet20", "lstm": "lstm --shape 12x4",
       "long": "lstm --shape 50x8", "char_lstm": "char_lstm --text @/text.txt --window 20"}
GOLDEN = ("averages", "mlp_adam", "cnn_sgd", "cnn_older")  # of tests/formats/golden, made by Keras
EDITED = {"synchronized": ("resnet20", synchronize), "stateful": ("lstm", make_stateful), "lstm_dropout": ("lstm", drop_in_lstm),
          "mlp_dropout": ("mlp", drop_between), "cifar_dropout": ("cifar", drop_between),
          "mlp_mixed": ("mlp", use_mixed_bfloat16), "cifar_mixed": ("cifar", use_mixed_bfloat16),
          "lstm_mixed": ("lstm", use_mixed_bfloat16), "resnet20_mixed": ("resnet20", use_mixed_bfloat16)}


def fit(model, options, epochs=2, then=""):
    """Trains, then asks the trained model for everything that a model can tell."""
    source = options.split("--train ")[1].split()[0]
    asked = f"--data {source} --quiet {then}"
    return [f"fit @/{model}.keras {options} --epochs {epochs} --output out.keras --csv-log log.csv --quiet",
            f"predict out.keras {asked} --output p.npy", f"evaluate out.keras {asked}"]


def everywhere(name, model, options, epochs=2):
    """The same on one device, two, and three, and cut into shards."""
    return {name: fit(model, options, epochs, "--batch-size 7"),
            f"{name}/two": fit(model, f"{options} {TWO}", epochs, TWO),
            f"{name}/three": fit(model, f"{options} {THREE}", epochs, f"{THREE} --batch-size 32"),
            f"{name}/shards": fit(model, f"{options} --shards 4 {TWO}", epochs, f"--shards 4 {TWO}")}


def optimizers():
    sgd, adam = "--optimizer sgd --learning-rate 0.05", "--optimizer adam"
    options = {
        "sgd": sgd, "momentum": f"{sgd} --momentum 0.9", "nesterov": f"{sgd} --momentum 0.9 --nesterov",
        "decay": f"{sgd} --momentum 0.9 --weight-decay 0.01", "amsgrad": f"{adam} --amsgrad --beta-1 0.8 --beta-2 0.99 --epsilon 1e-6",
        "adamw": f"{adam} --weight-decay 0.004", "clipnorm": f"{adam} --clipnorm 0.1", "clipvalue": f"{sgd} --clipvalue 0.01",
        "global_clipnorm": f"{sgd} --momentum 0.9 --global-clipnorm 0.2", "ema": f"{adam} --use-ema --ema-momentum 0.9",
        "ema_overwrite": f"{sgd} --use-ema --ema-overwrite-frequency 3",
        "accumulate": f"{adam} --gradient-accumulation-steps 3", "loss_scale": f"{adam} --loss-scale-factor 64",
        "everything": f"{sgd} --momentum 0.9 --nesterov --weight-decay 0.01 --global-clipnorm 0.5 --use-ema "
                      "--gradient-accumulation-steps 2 --loss-scale-factor 8",
        "schedule": f"{sgd} --schedule cosine_decay,decay_steps=5", "warmup": f"{sgd} --momentum 0.9 --momentum-correction "
        "--base-batch-size 8 --warmup-epochs 1"}
    made = {}
    for name, chosen in options.items():
        made[f"optimizer/{name}"] = fit("lenet5", f"{IMAGES} {chosen}")
        made[f"optimizer/{name}/two"] = fit("mlp", f"{IMAGES} {chosen} {TWO}")
        if name in ("momentum", "clipnorm", "global_clipnorm", "everything"):
            made[f"optimizer/{name}/shards"] = fit("mlp", f"{IMAGES} {chosen} --shards 4 {TWO}")
    return made


def runs():
    """What fit does beside its steps."""
    saved = "--checkpoint {epoch:02d}.keras --checkpoint-options save_best_only"
    return {
        "run/augment": fit("cifar_dropout", f"{COLOURS} --augment flip,crop=4,contrast=0.2,brightness=0.1"),
        "run/augment_shift": fit("cifar", f"{COLOURS} --augment shift=0.1,rotation=0.05 --shards 2 {TWO}"),
        "run/no_shuffle": fit("mlp", f"{IMAGES} --no-shuffle --drop-remainder"),
        "run/shuffle_buffer": fit("mlp", f"{IMAGES} --shuffle-buffer 20 --repeat 2"),
        "run/interleave": fit("mlp", f"{IMAGES} --train @/grey --interleave 3"),
        "run/cache": fit("cifar", f"{COLOURS} --cache memory --input-threads 2"),
        "run/steps": fit("lenet5", f"{IMAGES} --steps-per-epoch 2 --validation-steps 1 --steps-per-execution 2", 3),
        "run/plateau": fit("lenet5", f"{IMAGES} --reduce-lr 1,factor=0.5 --early-stopping 2,restore_best_weights {saved}", 4),
        "run/rates": fit("mlp", f"{IMAGES} --learning-rate-scheduler 0=0.01,1=0.002 --terminate-on-nan --monitor loss {saved}", 3),
        "run/rematerialize": fit("cifar", f"{COLOURS} --rematerialize"),
        "run/weights": fit("lenet5", IMAGES) + [f"fit @/lenet5.keras {IMAGES} --weights out.keras --output more.keras --quiet"],
        "run/twice": fit("lenet5", IMAGES) + [f"fit out.keras {IMAGES} --epochs 3 --initial-epoch 2 --output more.keras --quiet"],
        "run/metrics": fit("mlp", f"{IMAGES} --metrics accuracy,sparse_top_k_categorical_accuracy {TWO}"),
        "run/shares": fit("mlp", f"{IMAGES} --shard 1/3"),
        "run/confusion": fit("mlp", IMAGES) + ["evaluate out.keras --data @/grey --quiet --confusion --confusion-file c.csv"],
        "run/rows_1": fit("mlp", IMAGES.replace("32", "1"), 1, "--batch-size 1"),
        "run/rows_128": fit("mlp", IMAGES.replace("32", "128"), 3, "--batch-size 128"),
        "run/text": fit("char_lstm", "--train @/text.txt --window 20 --seed 3 --batch-size 16", 1, "--window 20")
        + ["generate out.keras --seed 5 --length 60"],
        "run/text/two": fit("char_lstm", f"--train @/text.txt --window 20 --seed 3 --batch-size 16 {TWO}", 1, "--window 20"),
    }


def resumed():
    """A run that ends after its first epoch and goes on from its backup."""
    made = {}
    for name, model, options in (("mlp", "mlp", IMAGES), ("lenet5/two", "lenet5", f"{IMAGES} {TWO}"),
                                 ("cifar_dropout/shards", "cifar_dropout", f"{COLOURS} --shards 2 {TWO} --augment flip"),
                                 ("resnet20", "resnet20", COLOURS), ("lstm_dropout", "lstm_dropout", SERIES)):
        backed = f"fit @/{model}.keras {options} --backup-dir backup --quiet --output out.keras"
        made[f"resumed/{name}"] = [f"{backed} --epochs 1 --keep-backup", f"{backed} --epochs 3 --csv-log log.csv"]
    return made


def told():
    """Sentences without times."""
    made = {f"told/summary/{model}": [f"summary @/{model}.keras"] for model in (*NEW, *EDITED, *GOLDEN)}
    made["told/refused"] = ["fit @/mlp.keras --train @/series.npz", "fit @/none.keras --train @/grey", "fit @/lstm.keras --train @/grey",
                            "evaluate @/mlp.keras --data @/colour.npz", "predict @/mlp.keras --data @/none.npz",
                            "fit @/mlp.keras --train @/grey --devices gpu:0", "fit @/mlp.keras --train @/grey --shards 2 --devices "
                            "cpu:0,cpu:1,cpu:2", "fit @/stateful.keras --train @/series.npz --batch-size 5",
                            "fit @/mlp.keras --train @/grey --optimizer adam --momentum 0.5", "new none"]
    return made


def explained():
    """What explain says, whose words may change; so these are compared only where they are asked for."""
    made = {}
    for model in (*NEW, *EDITED, *GOLDEN):
        made[f"explained/{model}"] = [f"explain @/{model}.keras", f"explain @/{model}.keras --mode predict --batch-size 1"]
        if model != "stateful":
            made[f"explained/{model}"] += [f"explain @/{model}.keras {TWO} --batch-size 64", f"explain @/{model}.keras --shards 4"]
    return made


def every_case():
    bfloat16 = "--precision bfloat16"
    cases = {f"new/{name}": [f"new {of} --seed 8 --output new.keras"] for name, of in NEW.items()}
    cases["new/zero_gamma"] = ["new resnet20 --zero-gamma --seed 8 --output new.keras"]
    for name, options in (("mlp", IMAGES), ("mlp_dropout", IMAGES), ("lenet5", IMAGES), ("cifar", COLOURS), ("cifar_dropout", COLOURS),
                          ("lstm", SERIES), ("lstm_dropout", SERIES)):
        cases.update(everywhere(name, name, options))
    for name in ("resnet20", "synchronized"):
        cases.update(everywhere(name, name, COLOURS, 1))
    cases["long"] = fit("long", "--train @/long.npz --validation-split 7 --seed 3")
    cases["long/two"] = fit("long", f"--train @/long.npz --validation-split 7 --seed 3 {TWO}")
    cases["stateful"] = fit("stateful", "--train @/states.npz --validation-split 8 --seed 3 --no-shuffle", 2, "--batch-size 4")
    cases["stateful/reset"] = fit("stateful", "--train @/states.npz --seed 3 --no-shuffle --reset-states", 3, "--steps 5")
    for name, options in (("keras/averages", "--train @/table.csv --features x=a,b,c,y=y,a --scale 0.01"),
                          ("keras/mlp_adam", "--train @/flat.npz"), ("keras/cnn_sgd", "--train @/small.npz"),
                          ("keras/cnn_older", "--train @/small.npz")):
        asked = "--features x=a,b,c,y=y,a" if "csv" in options else ""
        cases[name] = fit(name.split("/")[1], f"{options} --seed 3 --batch-size 16", 2, asked)
        cases[f"{name}/two"] = fit(name.split("/")[1], f"{options} --seed 3 --batch-size 16 {TWO}", 2, f"{asked} {TWO}")
    for name, options in (("mlp", IMAGES), ("cifar", COLOURS), ("lstm", SERIES), ("resnet20", COLOURS)):
        cases[f"bfloat16/{name}"] = fit(name, f"{options} {bfloat16}", 1, bfloat16)
        cases[f"bfloat16/{name}/two"] = fit(name, f"{options} {bfloat16} {TWO}", 1, f"{bfloat16} {TWO}")
        cases[f"bfloat16/{name}/mixed"] = fit(f"{name}_mixed", options, 1)
    for part in (optimizers(), runs(), resumed(), told()):
        cases.update(part)
    return cases
