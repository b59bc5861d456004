from tensorflow import keras
from tensorflow.keras import layers


def build(width=60):
    inputs = keras.Input((64, 64, 3))
    x = layers.Conv2D(32, 3, padding="same", use_bias=False)(inputs)
    x = layers.BatchNormalization()(x)
    x = layers.Conv2D(width, 3, padding="same")(x)
    x = layers.BatchNormalization()(x)
    x = layers.Conv2D(128, 3, padding="same")(x)
    x = layers.GlobalAveragePooling2D()(x)
    return keras.Model(inputs, layers.Dense(10)(x))


if __name__ == "__main__":
    (images, labels), _ = keras.datasets.cifar10.load_data()
    model = build()
    model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    model.fit(images, labels, batch_size=128, epochs=10)
