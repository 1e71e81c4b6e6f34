#!/usr/bin/env python3
"""Trains the perceptron of mlp3.tc and writes its weights as .npy files.

Needs NumPy. Every fifth image is held out: never trained on, and the accuracy on those 359 is what counts.
"""
import pathlib

import numpy as np

HERE = pathlib.Path(__file__).resolve().parent
HELD_OUT = 5
LAYERS = [64, 128, 64, 10]
EPOCHS, BATCH, RATE, DECAY, NOISE = 150, 32, 1e-3, 1e-3, 0.15


def forward(x, weights):
    """The output of every layer, the input first."""
    outputs = [x]
    for layer, (w, b) in enumerate(weights):
        x = x @ w.T + b
        if layer + 1 < len(weights):
            x = np.maximum(x, 0)
        outputs.append(x)
    return outputs


def gradients(outputs, label, weights):
    """Of the mean cross entropy, for every weight and bias."""
    e = np.exp(outputs[-1] - outputs[-1].max(axis=1, keepdims=True))
    delta = e / e.sum(axis=1, keepdims=True)
    delta[np.arange(len(label)), label] -= 1
    delta /= len(label)
    result = []
    for layer in reversed(range(len(weights))):
        result.append((delta.T @ outputs[layer], delta.sum(axis=0)))
        delta = (delta @ weights[layer][0]) * (outputs[layer] > 0)
    return result[::-1]


def train(x, label, random):
    """Adam with decoupled weight decay; noise on the pixels stands for the hands that the set does not hold."""
    weights = [(random.normal(0, np.sqrt(2 / n), (m, n)), np.zeros(m)) for n, m in zip(LAYERS, LAYERS[1:])]
    first = [[np.zeros_like(p) for p in pair] for pair in weights]
    second = [[np.zeros_like(p) for p in pair] for pair in weights]
    step = 0
    for epoch in range(EPOCHS):
        order = random.permutation(len(x))
        rate = RATE * (1 - epoch / EPOCHS)
        for begin in range(0, len(x), BATCH):
            rows = order[begin:begin + BATCH]
            seen = x[rows] + random.normal(0, NOISE, (len(rows), LAYERS[0]))
            step += 1
            for layer, pair in enumerate(gradients(forward(seen, weights), label[rows], weights)):
                for which, gradient in enumerate(pair):
                    m, v, p = first[layer][which], second[layer][which], weights[layer][which]
                    m += 0.1 * (gradient - m)
                    v += 0.001 * (gradient**2 - v)
                    p -= rate * (m / (1 - 0.9**step) / (np.sqrt(v / (1 - 0.999**step)) + 1e-8) + DECAY * p)
    return weights


def accuracy(x, label, weights):
    return (forward(x, weights)[-1].argmax(axis=1) == label).mean()


def main():
    image, label = np.load(HERE / "image.npy"), np.load(HERE / "label.npy")
    x = image / 16.0
    held_out = np.arange(len(x)) % HELD_OUT == HELD_OUT - 1
    weights = train(x[~held_out], label[~held_out], np.random.default_rng(0))
    for name, rows in ("of training", ~held_out), ("held out", held_out):
        print(f"accuracy on the {rows.sum()} images {name}: {accuracy(x[rows], label[rows], weights):.4f}")
    # The program takes pixels as they are, 0 to 16: the scale goes into the first layer.
    weights[0] = (weights[0][0] / 16, weights[0][1])
    for number, (w, b) in enumerate(weights, 1):
        np.save(HERE / f"w{number}.npy", w.astype(np.float32))
        np.save(HERE / f"b{number}.npy", b.astype(np.float32))


if __name__ == "__main__":
    main()
