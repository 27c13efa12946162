/* golden.h - written by golden.py with Keras 3.15.1 on JAX. Not to be edited. */
/* clang-format off */
static const char golden_InputLayer[] =
    "{\"batch_shape\": [null, 8, 8, 3], \"sparse\": false, \"ragged\": false, \"optional\": false} ";

static const char golden_Dense[] =
    "{\"units\": 7, \"activation\": \"linear\", \"use_bias\": true, \"kernel_initializer\": {\"module\": "
    "\"keras.initializers\", \"class_name\": \"GlorotUniform\", \"config\": {\"seed\": null, "
    "\"input_axes\": null, \"output_axes\": null}, \"registered_name\": null}, \"bias_initializer\": "
    "{\"module\": \"keras.initializers\", \"class_name\": \"Zeros\", \"config\": {}, \"registered_name\": "
    "null}, \"kernel_regularizer\": null, \"bias_regularizer\": null, \"kernel_constraint\": null, "
    "\"bias_constraint\": null, \"quantization_config\": null} ";

static const char golden_Conv2D[] =
    "{\"filters\": 7, \"kernel_size\": [3, 3], \"strides\": [1, 1], \"padding\": \"valid\", "
    "\"data_format\": \"channels_last\", \"dilation_rate\": [1, 1], \"groups\": 1, \"activation\": "
    "\"linear\", \"use_bias\": true, \"kernel_initializer\": {\"module\": \"keras.initializers\", "
    "\"class_name\": \"GlorotUniform\", \"config\": {\"seed\": null, \"input_axes\": null, \"output_axes\": "
    "null}, \"registered_name\": null}, \"bias_initializer\": {\"module\": \"keras.initializers\", "
    "\"class_name\": \"Zeros\", \"config\": {}, \"registered_name\": null}, \"kernel_regularizer\": null, "
    "\"bias_regularizer\": null, \"activity_regularizer\": null, \"kernel_constraint\": null, "
    "\"bias_constraint\": null} ";

static const char golden_MaxPooling2D[] =
    "{\"pool_size\": [2, 2], \"padding\": \"valid\", \"strides\": [2, 2], \"data_format\": "
    "\"channels_last\"} ";

static const char golden_AveragePooling2D[] =
    "{\"pool_size\": [2, 2], \"padding\": \"valid\", \"strides\": [2, 2], \"data_format\": "
    "\"channels_last\"} ";

static const char golden_GlobalAveragePooling2D[] =
    "{\"data_format\": \"channels_last\", \"keepdims\": false} ";

static const char golden_Flatten[] =
    "{\"data_format\": \"channels_last\"} ";

static const char golden_Reshape[] =
    "{\"target_shape\": [24, -1]} ";

static const char golden_Activation[] =
    "{\"activation\": \"linear\"} ";

static const char golden_Dropout[] =
    "{\"rate\": 0.25, \"seed\": null, \"noise_shape\": null} ";

static const char golden_Add[] =
    "{} ";

static const char golden_Concatenate[] =
    "{\"axis\": -1} ";

static const char golden_BatchNormalization[] =
    "{\"axis\": -1, \"momentum\": 0.99, \"epsilon\": 0.001, \"center\": true, \"scale\": true, "
    "\"beta_initializer\": {\"module\": \"keras.initializers\", \"class_name\": \"Zeros\", \"config\": {}, "
    "\"registered_name\": null}, \"gamma_initializer\": {\"module\": \"keras.initializers\", "
    "\"class_name\": \"Ones\", \"config\": {}, \"registered_name\": null}, \"moving_mean_initializer\": "
    "{\"module\": \"keras.initializers\", \"class_name\": \"Zeros\", \"config\": {}, \"registered_name\": "
    "null}, \"moving_variance_initializer\": {\"module\": \"keras.initializers\", \"class_name\": "
    "\"Ones\", \"config\": {}, \"registered_name\": null}, \"beta_regularizer\": null, "
    "\"gamma_regularizer\": null, \"beta_constraint\": null, \"gamma_constraint\": null, "
    "\"synchronized\": false, \"renorm\": false, \"renorm_clipping\": null, \"renorm_momentum\": 0.99} ";

static const char golden_ZeroPadding2D[] =
    "{\"padding\": [[1, 2], [3, 4]], \"data_format\": \"channels_last\"} ";

static const char golden_ReLU[] =
    "{\"max_value\": null, \"negative_slope\": 0.0, \"threshold\": 0.0} ";

static const char golden_Softmax[] =
    "{\"axis\": -1} ";

static const char golden_LSTM[] =
    "{\"return_sequences\": false, \"return_state\": false, \"go_backwards\": false, \"stateful\": "
    "false, \"unroll\": false, \"zero_output_for_mask\": false, \"units\": 7, \"activation\": \"tanh\", "
    "\"recurrent_activation\": \"sigmoid\", \"use_bias\": true, \"kernel_initializer\": {\"module\": "
    "\"keras.initializers\", \"class_name\": \"GlorotUniform\", \"config\": {\"seed\": null, "
    "\"input_axes\": null, \"output_axes\": null}, \"registered_name\": null}, "
    "\"recurrent_initializer\": {\"module\": \"keras.initializers\", \"class_name\": \"Orthogonal\", "
    "\"config\": {\"seed\": null, \"gain\": 1.0}, \"registered_name\": null}, \"bias_initializer\": "
    "{\"module\": \"keras.initializers\", \"class_name\": \"Zeros\", \"config\": {}, \"registered_name\": "
    "null}, \"unit_forget_bias\": true, \"kernel_regularizer\": null, \"recurrent_regularizer\": "
    "null, \"bias_regularizer\": null, \"activity_regularizer\": null, \"kernel_constraint\": null, "
    "\"recurrent_constraint\": null, \"bias_constraint\": null, \"dropout\": 0.0, "
    "\"recurrent_dropout\": 0.0, \"seed\": null} ";

static const char golden_Embedding[] =
    "{\"input_dim\": 9, \"output_dim\": 4, \"embeddings_initializer\": {\"module\": "
    "\"keras.initializers\", \"class_name\": \"RandomUniform\", \"config\": {\"seed\": null, \"minval\": "
    "-0.05, \"maxval\": 0.05}, \"registered_name\": null}, \"embeddings_regularizer\": null, "
    "\"activity_regularizer\": null, \"embeddings_constraint\": null, \"mask_zero\": false, "
    "\"quantization_config\": null} ";

static const char golden_Normalization[] =
    "{\"axis\": [-1], \"invert\": false, \"mean\": null, \"variance\": null} ";

static const char golden_UpSampling2D[] =
    "{\"size\": [2, 2], \"data_format\": \"channels_last\", \"interpolation\": \"nearest\"} ";

static const char golden_SGD[] =
    "{\"learning_rate\": 0.009999999776482582, \"weight_decay\": null, \"clipnorm\": null, "
    "\"global_clipnorm\": null, \"clipvalue\": null, \"use_ema\": false, \"ema_momentum\": 0.99, "
    "\"ema_overwrite_frequency\": null, \"loss_scale_factor\": null, \"gradient_accumulation_steps\": "
    "null, \"momentum\": 0.0, \"nesterov\": false} ";

static const char golden_Adam[] =
    "{\"learning_rate\": 0.0010000000474974513, \"weight_decay\": null, \"clipnorm\": null, "
    "\"global_clipnorm\": null, \"clipvalue\": null, \"use_ema\": false, \"ema_momentum\": 0.99, "
    "\"ema_overwrite_frequency\": null, \"loss_scale_factor\": null, \"gradient_accumulation_steps\": "
    "null, \"beta_1\": 0.9, \"beta_2\": 0.999, \"epsilon\": 1e-07, \"amsgrad\": false} ";

static const float golden_logits[] = {
    4.081838131e+00f, -5.111330032e+00f, 8.361976743e-01f, -1.135539174e+00f, -9.052985907e-01f,
    -4.311943352e-01f, -4.039972305e+00f, -4.638647437e-01f, -1.730426192e+00f, 6.645998955e+00f,
    4.515732229e-01f, -7.052615881e-01f, -5.625748634e-01f, -1.336092710e+00f, -2.110301018e+00f,
    -7.816019654e-01f, 9.638907909e-01f, -4.771072268e-01f, 1.915517449e+00f, -3.996042609e-01f,
    4.851913080e-02f, 3.091641665e+00f, 1.090211034e+00f, -1.010457516e+00f, -3.656779528e-01f,
    1.081050277e+00f, 3.870176077e+00f, -5.392406583e-01f, -4.871173501e-01f, 2.004627228e+00f};

static const int32_t golden_classes[] = {
    0, 1, 0, 0, 1, 3};

static const float golden_targets[] = {
    5.669741631e-01f, 3.808939084e-02f, 1.434725672e-01f, 2.371918224e-02f, 2.277447134e-01f,
    3.374559879e-01f, 1.437194049e-01f, 2.149881572e-01f, 1.835695505e-01f, 1.202668846e-01f,
    2.003460675e-01f, 4.399815202e-02f, 2.308941782e-01f, 5.025132298e-01f, 2.224837989e-02f,
    1.494989693e-01f, 2.312877625e-01f, 1.613237411e-01f, 2.934095263e-01f, 1.644799858e-01f,
    1.637610346e-01f, 3.504397869e-01f, 2.124764621e-01f, 1.256705821e-01f, 1.476521194e-01f,
    1.782335341e-01f, 3.579438627e-01f, 1.188689992e-01f, 1.204280853e-01f, 2.245254368e-01f};

static const float golden_bits[] = {
    0.000000000e+00f, 0.000000000e+00f, 1.000000000e+00f, 0.000000000e+00f, 1.000000000e+00f,
    0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f,
    0.000000000e+00f, 1.000000000e+00f, 1.000000000e+00f, 1.000000000e+00f, 1.000000000e+00f,
    1.000000000e+00f, 0.000000000e+00f, 1.000000000e+00f, 1.000000000e+00f, 1.000000000e+00f,
    0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 1.000000000e+00f, 0.000000000e+00f,
    0.000000000e+00f, 1.000000000e+00f, 0.000000000e+00f, 1.000000000e+00f, 0.000000000e+00f};

static const float golden_probabilities[] = {
    0.000000000e+00f, 6.691275239e-01f, 5.230497718e-01f, 5.547374487e-01f, 1.981497109e-01f,
    4.951874018e-01f, 1.000000000e+00f, 4.807470143e-01f, 5.362449288e-01f, 7.741048336e-01f,
    3.936648071e-01f, 1.960041933e-02f, 5.277499557e-01f, 2.052324861e-01f, 7.412575483e-01f,
    3.886972368e-01f, 3.804731667e-01f, 9.094545841e-01f, 3.929704428e-01f, 3.488515913e-01f,
    3.480197489e-01f, 4.807655811e-01f, 9.329210967e-02f, 5.467473865e-01f, 9.214274883e-01f,
    5.629220605e-01f, 7.439101934e-01f, 9.471406341e-01f, 8.421154022e-01f, 7.440063357e-01f};

static const float golden_mild[] = {
    1.020459533e+00f, -1.277832508e+00f, 2.090494186e-01f, -2.838847935e-01f, -2.263246477e-01f,
    -1.077985838e-01f, -1.009993076e+00f, -1.159661859e-01f, -4.326065481e-01f, 1.661499739e+00f,
    1.128933057e-01f, -1.763153970e-01f, -1.406437159e-01f, -3.340231776e-01f, -5.275752544e-01f,
    -1.954004914e-01f, 2.409726977e-01f, -1.192768067e-01f, 4.788793623e-01f, -9.990106523e-02f,
    1.212978270e-02f, 7.729104161e-01f, 2.725527585e-01f, -2.526143789e-01f, -9.141948819e-02f,
    2.702625692e-01f, 9.675440192e-01f, -1.348101646e-01f, -1.217793375e-01f, 5.011568069e-01f};

static const float golden_softmax[] = {
    4.754118025e-01f, 4.774571210e-02f, 2.111927569e-01f, 1.290031821e-01f, 1.366464794e-01f,
    1.112725139e-01f, 4.514085874e-02f, 1.103673875e-01f, 8.041288704e-02f, 6.528064013e-01f,
    2.708889544e-01f, 2.028567940e-01f, 2.102236450e-01f, 1.732598394e-01f, 1.427707821e-01f,
    1.494989693e-01f, 2.312877625e-01f, 1.613237411e-01f, 2.934095263e-01f, 1.644799858e-01f,
    1.637610346e-01f, 3.504397869e-01f, 2.124764621e-01f, 1.256705821e-01f, 1.476521194e-01f,
    1.782335341e-01f, 3.579438627e-01f, 1.188689992e-01f, 1.204280853e-01f, 2.245254368e-01f};

static const float golden_sigmoid[] = {
    7.350621223e-01f, 2.179194093e-01f, 5.520728827e-01f, 4.295016229e-01f, 4.436591566e-01f,
    4.730764031e-01f, 2.669811845e-01f, 4.710409045e-01f, 3.935040832e-01f, 8.404392004e-01f,
    5.281934142e-01f, 4.560349584e-01f, 4.648969471e-01f, 4.172620475e-01f, 3.710826039e-01f,
    4.513047040e-01f, 5.599533319e-01f, 4.702160954e-01f, 6.174831986e-01f, 4.750455022e-01f,
    5.030324459e-01f, 6.841500998e-01f, 5.677195191e-01f, 4.371800721e-01f, 4.771610796e-01f,
    5.671573877e-01f, 7.246297598e-01f, 4.663484097e-01f, 4.695927799e-01f, 6.227311492e-01f};

static const float golden_sparse_logits[] = {
    5.001994222e-02f, 1.068788338e+01f, 6.532109976e-01f, 3.194042206e+00f, 2.077290863e-01f, 4.573421955e+00f};

static const float golden_sparse_logits_gradient[] = {
    -4.878956079e-02f, 9.676854097e-05f, 3.704356775e-02f, 5.157015752e-03f, 6.492180284e-03f,
    8.425263222e-04f, -9.999771714e-01f, 8.154452662e-04f, 2.297917090e-04f, 9.980893731e-01f,
    -4.796278477e-01f, 1.636466235e-01f, 1.887448430e-01f, 8.708444983e-02f, 4.015191272e-02f,
    -9.589942098e-01f, 2.349108160e-01f, 5.560137331e-02f, 6.083999872e-01f, 6.008203328e-02f,
    3.874120116e-02f, -1.875728965e-01f, 1.097928807e-01f, 1.343585458e-02f, 2.560292184e-02f,
    4.952616617e-02f, 8.056319952e-01f, 9.798314422e-03f, -9.896774292e-01f, 1.247208714e-01f};

static const float golden_sparse_probabilities[] = {
    1.611809540e+01f, 1.189757586e+00f, 1.567511439e+00f, 1.828906775e+00f, 1.603774428e+00f, 1.517335176e+00f};

static const float golden_sparse_probabilities_gradient[] = {
    -0.000000000e+00f, -0.000000000e+00f, -0.000000000e+00f, -0.000000000e+00f, -0.000000000e+00f,
    3.042950928e-01f, -6.957049370e-01f, 3.042950928e-01f, 3.042950928e-01f, 3.042950928e-01f,
    -2.010432243e+00f, 5.297998190e-01f, 5.297998190e-01f, 5.297998190e-01f, 5.297998190e-01f,
    -2.159549713e+00f, 4.131467938e-01f, 4.131467938e-01f, 4.131467938e-01f, 4.131467938e-01f,
    4.183658659e-01f, -1.661650062e+00f, 4.183658659e-01f, 4.183658659e-01f, 4.183658659e-01f,
    2.604102194e-01f, 2.604102194e-01f, 2.604102194e-01f, -9.270753860e-01f, 2.604102194e-01f};

static const float golden_categorical_logits[] = {
    2.125388622e+00f, 6.992128372e+00f, 1.893593907e+00f, 1.887017250e+00f, 2.157324553e+00f, 2.180990458e+00f};

static const float golden_categorical_logits_gradient[] = {
    3.842362761e-01f, -3.799262270e-02f, -1.064289957e-01f, -1.856216602e-02f, -2.212525308e-01f,
    -3.366134763e-01f, -1.436965913e-01f, -2.141727060e-01f, -1.833397597e-01f, 8.778225183e-01f,
    3.200260997e-01f, 1.196484715e-01f, -4.214932770e-02f, -4.154287875e-01f, 1.790353283e-02f,
    -1.084931865e-01f, 3.623025026e-03f, -1.057223752e-01f, 3.149904013e-01f, -1.043979600e-01f,
    -1.250198334e-01f, 4.619873166e-01f, -1.026835814e-01f, -1.122347265e-01f, -1.220491976e-01f,
    -1.287073642e-01f, 4.476881325e-01f, -1.090706810e-01f, -1.101055071e-01f, -9.980456531e-02f};

static const float golden_categorical_logits_smooth[] = {
    2.370718002e+00f, 6.958095074e+00f, 1.899966002e+00f, 1.915137529e+00f, 2.214444399e+00f, 2.252932072e+00f};

static const float golden_categorical_probabilities[] = {
    9.917553902e+00f, 1.729576349e+00f, 1.945058584e+00f, 1.711301565e+00f, 1.892858505e+00f, 1.647347689e+00f};

static const float golden_categorical_probabilities_gradient[] = {
    2.226280272e-01f, 1.657040715e-01f, -5.167201161e-02f, 1.798705310e-01f, -9.267287254e-01f,
    -3.771762252e-01f, 1.605756581e-01f, -1.429009736e-01f, -3.802901506e-02f, 1.489325315e-01f,
    2.087432146e-02f, -1.714955926e+00f, 9.229305387e-02f, -1.918707490e+00f, 4.997854531e-01f,
    2.853134274e-02f, -1.947482526e-01f, 2.357616574e-01f, -3.334985077e-01f, -5.834305286e-02f,
    -5.218511820e-02f, -3.105544150e-01f, -1.859173656e+00f, 1.885146052e-01f, 2.581230700e-01f,
    -5.621185899e-02f, -2.207552195e-01f, 1.349071860e-01f, 1.174035668e-01f, -4.136872292e-02f};

static const float golden_categorical_probabilities_smooth[] = {
    9.366539001e+00f, 1.721883416e+00f, 1.961810470e+00f, 1.708433509e+00f, 1.887622118e+00f, 1.645008564e+00f};

static const float golden_binary_logits[] = {
    1.197620630e+00f, 1.563275099e+00f, 1.371716380e+00f, 8.910967112e-01f, 1.416323423e+00f, 9.900633693e-01f};

static const float golden_binary_logits_gradient[] = {
    1.966807395e-01f, 1.198388054e-03f, -6.046724319e-02f, 4.862806201e-02f, -1.424074173e-01f,
    7.876824588e-02f, 3.458725056e-03f, 7.721388340e-02f, 3.010661714e-02f, 1.997404844e-01f,
    1.222026348e-01f, -1.338706613e-01f, -1.274096221e-01f, -1.583693475e-01f, -1.783800721e-01f,
    -1.372050643e-01f, 1.447800398e-01f, -1.234129220e-01f, -2.567245066e-02f, -1.197185144e-01f,
    1.024254784e-01f, 1.913093328e-01f, 1.496842951e-01f, -1.466219425e-01f, 8.191715926e-02f,
    1.493385285e-01f, -4.085733090e-03f, 7.367285341e-02f, -1.238854304e-01f, 1.762564033e-01f};

static const float golden_binary_logits_smooth[] = {
    1.218579888e+00f, 1.563469648e+00f, 1.320058346e+00f, 8.840299845e-01f, 1.367571831e+00f, 9.984295964e-01f};

static const float golden_binary_probabilities[] = {
    8.363849521e-01f, 3.907480240e+00f, 1.390935659e+00f, 7.011587024e-01f, 8.657155037e-01f, 1.119608045e+00f};

static const float golden_binary_probabilities_gradient[] = {
    0.000000000e+00f, 6.044625044e-01f, -3.823727965e-01f, 4.491731822e-01f, -1.009337902e+00f,
    3.961866200e-01f, 0.000000000e+00f, 3.851687014e-01f, 4.312621355e-01f, 8.853664398e-01f,
    3.298505843e-01f, -1.020386314e+01f, -3.789673448e-01f, -9.745045900e-01f, -2.698117495e-01f,
    -5.145393014e-01f, 3.228270113e-01f, -2.199120224e-01f, -5.089441538e-01f, -5.733097196e-01f,
    3.067577481e-01f, 3.851824701e-01f, 2.205782086e-01f, -3.657996655e-01f, 2.545419455e+00f,
    4.575842917e-01f, -2.688496709e-01f, 3.783624649e+00f, -2.374971509e-01f, 7.812693715e-01f};

static const float golden_binary_probabilities_smooth[] = {
    9.752687812e-01f, 3.735250235e+00f, 1.354228258e+00f, 7.139868140e-01f, 8.727599978e-01f, 1.104955077e+00f};

static const float golden_ignoring_logits[] = {
    5.156344891e+00f};

static const float golden_ignoring_logits_gradient[] = {
    0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f,
    2.808420977e-04f, -3.333257437e-01f, 2.718151081e-04f, 7.659723633e-05f, 3.326964676e-01f,
    0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f,
    0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f,
    1.291373465e-02f, -6.252428889e-02f, 3.659762815e-02f, 4.478618503e-03f, 8.534307592e-03f,
    1.650872268e-02f, 2.685440183e-01f, 3.266105196e-03f, -3.298924863e-01f, 4.157362506e-02f};

static const float golden_ignoring_probabilities[] = {
    1.436955810e+00f};

static const float golden_ignoring_probabilities_gradient[] = {
    0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f,
    1.014316902e-01f, -2.319016457e-01f, 1.014316902e-01f, 1.014316902e-01f, 1.014316902e-01f,
    0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f,
    0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f,
    1.394553035e-01f, -5.538833141e-01f, 1.394553035e-01f, 1.394553035e-01f, 1.394553035e-01f,
    8.680340648e-02f, 8.680340648e-02f, 8.680340648e-02f, -3.090251684e-01f, 8.680340648e-02f};

static const float golden_sparse_softmax[] = {
    7.435739040e-01f, 3.097967386e+00f, 1.306046247e+00f, 1.900465727e+00f, 1.048566341e+00f, 2.116702318e+00f};

static const float golden_categorical_softmax[] = {
    1.262416005e+00f, 2.174028635e+00f, 1.616142035e+00f, 1.573709369e+00f, 1.535965204e+00f, 1.518594623e+00f};

static const float golden_binary_sigmoid[] = {
    7.084152699e-01f, 7.847030759e-01f, 8.335365653e-01f, 7.194995880e-01f, 8.332582712e-01f, 7.036349177e-01f};

static const float golden_mse[] = {
    8.395665169e+00f, 1.296070004e+01f, 1.836467385e+00f, 9.521352053e-01f, 1.970436335e+00f, 3.424367189e+00f};

static const float golden_mse_gradient[] = {
    1.405945659e+00f, -2.059767723e+00f, 2.770900428e-01f, -4.637033641e-01f, -4.532173276e-01f,
    -3.074601293e-01f, -1.673476577e+00f, -2.715411782e-01f, -7.655982971e-01f, 2.610292912e+00f,
    1.004908606e-01f, -2.997038960e-01f, -3.173876405e-01f, -7.354423404e-01f, -8.530197144e-01f,
    -3.724403977e-01f, 2.930411994e-01f, -2.553723752e-01f, 6.488432288e-01f, -2.256336957e-01f,
    -4.609676078e-02f, 1.096480727e+00f, 3.510938287e-01f, -4.544512331e-01f, -2.053320408e-01f,
    3.611267209e-01f, 1.404892921e+00f, -2.632438838e-01f, -2.430181801e-01f, 7.120407224e-01f};

static const float golden_mae[] = {
    2.329862356e+00f, 2.814184666e+00f, 1.153022170e+00f, 8.976654410e-01f, 1.076727271e+00f, 1.492161155e+00f};

static const float golden_mae_gradient[] = {
    2.000000030e-01f, -2.000000030e-01f, 2.000000030e-01f, -2.000000030e-01f, -2.000000030e-01f,
    -2.000000030e-01f, -2.000000030e-01f, -2.000000030e-01f, -2.000000030e-01f, 2.000000030e-01f,
    2.000000030e-01f, -2.000000030e-01f, -2.000000030e-01f, -2.000000030e-01f, -2.000000030e-01f,
    -2.000000030e-01f, 2.000000030e-01f, -2.000000030e-01f, 2.000000030e-01f, -2.000000030e-01f,
    -2.000000030e-01f, 2.000000030e-01f, 2.000000030e-01f, -2.000000030e-01f, -2.000000030e-01f,
    2.000000030e-01f, 2.000000030e-01f, -2.000000030e-01f, -2.000000030e-01f, 2.000000030e-01f};

static const float golden_huber[] = {
    2.460038424e+00f, 3.217192173e+00f, 8.667564392e-01f, 4.745765328e-01f, 8.311600089e-01f, 1.299430013e+00f};

static const float golden_huber_gradient[] = {
    3.000000119e-01f, -3.000000119e-01f, 1.385450214e-01f, -2.318516821e-01f, -2.266086638e-01f,
    -1.537300646e-01f, -3.000000119e-01f, -1.357705891e-01f, -3.000000119e-01f, 3.000000119e-01f,
    5.024543032e-02f, -1.498519480e-01f, -1.586938202e-01f, -3.000000119e-01f, -3.000000119e-01f,
    -1.862201989e-01f, 1.465205997e-01f, -1.276861876e-01f, 3.000000119e-01f, -1.128168479e-01f,
    -2.304838039e-02f, 3.000000119e-01f, 1.755469143e-01f, -2.272256166e-01f, -1.026660204e-01f,
    1.805633605e-01f, 3.000000119e-01f, -1.316219419e-01f, -1.215090901e-01f, 3.000000119e-01f};

static const float golden_sparse_accuracy[] = {
    1.000000000e+00f, 0.000000000e+00f, 1.000000000e+00f, 0.000000000e+00f, 1.000000000e+00f, 0.000000000e+00f};

static const float golden_categorical_accuracy[] = {
    1.000000000e+00f, 0.000000000e+00f, 0.000000000e+00f, 1.000000000e+00f, 1.000000000e+00f, 1.000000000e+00f};

static const float golden_binary_accuracy[] = {
    6.000000238e-01f, 8.000000119e-01f, 0.000000000e+00f, 2.000000030e-01f, 2.000000030e-01f, 4.000000060e-01f};

