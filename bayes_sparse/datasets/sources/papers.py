"""The papers' data sets."""

from __future__ import annotations

from bayes_sparse.datasets.sources import Copy, Source

__all__ = ["COPIES", "MNIST", "MNIST_URL", "ORIGINS", "SETS"]

# One line a set: rows, features, SHA-256 of the uncompressed CSV.
SETS: dict[str, Source] = {
    "australian": Source(690, 14, "dffa1d192edce1f5164905c3c0c23ec5c57b172d9c7cc5364e5ac88ff90de740"),
    "boston_housing": Source(506, 13, "0dd87647f1a025f08e56181fa0b9d56443c15d956df42606d7e886b2f4aa349b"),
    "breast_cancer_ljubljana": Source(286, 9, "523c79a62825c0b1ae441fe3c47ba5002a8fee76704a465637e32842e6884166"),
    "bupa": Source(345, 6, "a6fbbcc6cdb69f3646d55221a8dd413f02e491427660e8fa4a9efb34e89776fb"),
    "colon_alon": Source(62, 2000, "57bd3d065c1849483ca99044029720dc90156fa05bb9d3415160a495d5392a40"),
    "contractions": Source(98, 27, "a794cc2f0588fa43eb488d9c8218d0120d17a3915677a220cf306ea1cf0c4191"),
    "german_credit": Source(1000, 20, "46d8beda8ff964b34da36280d6c9fd1907e5458458c72cb2afe8b0d17afc25a3"),
    "german_numeric": Source(1000, 24, "2afc8bd4270d1dbd6d009539bbd28a8086e28f6f365b308d21450c778bbe7a2f"),
    "heart_statlog": Source(270, 13, "460e687ac955b2a7b3bac2125bfaa703f11f212bdd08a6b3c9bcaabc7b3d0ae8"),
    "hepatitis": Source(155, 19, "6968e6f195ec198d8bf3268aae08680f541abe0e161a4d233a8e8bbdd547c84e"),
    "house_votes_84": Source(435, 16, "46ec3d01ea894e0450dc3c77de2cfe3eff7f4152865938bb6ff66fe13b7d8d86"),
    "ida_banana": Source(5300, 2, "74c758f86d02285073ca5e39c3e28903e3bea179b44e267b763ea7f06fab4b41"),
    "ida_breast_cancer": Source(277, 9, "c6cc7c07e435221b8aaefdcbeaa9af2642750a380a968111e115e07335d337d1"),
    "ida_german": Source(1000, 20, "f0a074471d1d9d141416b8af5b6051db344022f78d2d93e9852ae603090fcb56"),
    "ida_image": Source(2310, 18, "5be6e6425a7aa01c4e32921f69559086e0955df7467e9d9a1bf03aaa71b0d9fd"),
    "ida_titanic": Source(2201, 3, "3fe600bda5e1e9c8d321653d4f564b83b5b7c97cc8867d0a089fc9a4804d60a3"),
    "ida_waveform": Source(5000, 21, "8eebf92f8b7fefd6bb0636cbe17ab068abf701ed766f84fb9a1c17a98b8b31be"),
    "laryngeal1": Source(213, 16, "7c0ac2ea65284e4a12370d13ac423a2cea6ba22fe7773b2bcc8c1ae48fc6335a"),
    "leukemia_golub": Source(72, 7129, "8a18b37d7383df614592f6dc56442aa38c2abfe3e166772519fa9c6f22d49a93"),
    "mushroom": Source(8124, 22, "823942729aafeee92ccea2744056965273821ad0a97b5befd8c1f47efd6cb4a7"),
    "pima": Source(768, 8, "0053bf39b515b58658a9f5f65a72475cd51c386723b4d8ad33c65db1e3a400ee"),
    "pima_ripley_test": Source(332, 7, "1eedddd8b67345c777b4d7fef0d4d1958d37549ea95a37c6a11ff58aa1f25bbf"),
    "pima_ripley_train": Source(200, 7, "fc2931e109f733619187c1b03afafa5c0dc6aeb96d04dfeb5af8877f08ce50f3"),
    "respiratory": Source(85, 17, "2ba81ef00aa47e1f612dcd6c8ca12d221cc4e7dd5eeb47d09ff4ca4b66c7d2f2"),
    "ripley_synth_test": Source(1000, 2, "cce7f92bdbe9c795f5fb21dd504fac11fe77ddf00e37c0ff3bdc9b641503b4f0"),
    "ripley_synth_train": Source(250, 2, "2df64dda39d5d766fcb74a051586faed40fd35177c7982e19555fbec5a542b6b"),
    "sick": Source(3772, 29, "8e0886e6166a7fb570008a80a1fce173c6473fbcf9ea9a0c6ea3a337c2b9ae22"),
    "sick_test": Source(972, 29, "707c5c38c0ea3030e55709d3497fac58b9a0d91e44fd533ba2aa998d5afe62cc"),
    "usps_test": Source(2007, 256, "5b39748a69e3be010b533e93e11db65d560759e120b7f7d22ca7915ac3ec4169"),
    "usps_train": Source(7291, 256, "4450e5d820b6a165ce5f3744b0b54f16f27da2b3e642d1f66472d0978a0866de"),
    "wdbc": Source(569, 30, "6400660c1443cd1d91f480e789779eac39a3e1779de526316ce1334028aa0f70"),
    "weaning": Source(302, 17, "b298b5a82ee2c70167557e4db3a7493e4ecbd80b918492bd9c15747fd0c4b7b7"),
    "wpbc": Source(198, 33, "22c37b1e469949df75b473d5543498996f09649079ceada834624e38efb1d534"),
}

# The two idx files of each MNIST set with the SHA-256 of the compressed file, as published.
MNIST: dict[str, dict[str, str]] = {
    "mnist_test": {
        "t10k-images-idx3-ubyte.gz": "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "t10k-labels-idx1-ubyte.gz": "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    },
    "mnist_train": {
        "train-images-idx3-ubyte.gz": "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "train-labels-idx1-ubyte.gz": "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    },
}
MNIST_URL = "https://ossci-datasets.s3.amazonaws.com/mnist/"  # the mirror torchvision reads, with the same MD5 sums

_CELL = "radius texture perimeter area smoothness compactness concavity concave_points symmetry fractal_dim"
_CELLS = " ".join(f"{name}_{kind}" for kind in ("mean", "se", "worst") for name in _CELL.split())
_PIMA = "npreg glu bp skin bmi ped age"
_RDATASETS = "vincentarelbundock/Rdatasets"
_SICK = (
    "age sex on_thyroxine query_on_thyroxine on_antithyroid_medication sick pregnant thyroid_surgery "
    "I131_treatment query_hypothyroid query_hyperthyroid lithium goitre tumor hypopituitary psych TSH_measured "
    "TSH T3_measured T3 TT4_measured TT4 T4U_measured T4U FTI_measured FTI TBG_measured TBG referral_source"
)
_BOSTON = "crim zn indus chas nox rm age dis rad tax ptratio black lstat"

COPIES: dict[str, Copy] = {
    "australian": Copy(
        "Phas3r/MLCourse",
        "cbba3633ca95cc0f55f6233af1e080eccdea530a",
        "australian.dat",
        " ".join(f"a{i}" for i in range(1, 15)),
        skip=1,
    ),
    "boston_housing": Copy(
        "rasbt/mlxtend",
        "102c6ff4798dc685b7b335272e9fd51b5fe9a85a",
        "mlxtend/data/data/boston_housing.csv",
        _BOSTON,
        numbers={name: int if name in ("chas", "rad") else float for name in [*_BOSTON.split(), "target"]},
    ),
    "breast_cancer_ljubljana": Copy(
        "BogoEngineer/BreastCancerClassification",
        "8441a0b8c6199432a2b90650f93a01f774354a6d",
        "breast-cancer.data",
        "age menopause tumor_size inv_nodes node_caps deg_malig breast breast_quad irradiat",
        skip=1,
        target=0,
    ),
    "bupa": Copy(
        "vilge/Liver_patient",
        "7661ee3d846561e74a432d06fd5214ba36d9cac2",
        "bupa.data",
        "mcv alkphos sgpt sgot gammagt drinks",
        skip=1,
    ),
    "german_credit": Copy(
        "lfvvercosa/base_german",
        "713ab310897d3cf008e71d19ad3b5b3830c10cf0",
        "german.data",
        "checking_status duration credit_history purpose credit_amount savings_status employment installment_rate "
        "personal_status_sex other_debtors residence_since property age other_payment_plans housing "
        "existing_credits job n_dependents telephone foreign_worker",
        skip=1,
    ),
    "german_numeric": Copy(
        "eduardoluiz7/SI-2018-2",
        "f5e99bc59d2bf4e0692df9ce344ad2c1ea9e51dd",
        "german.data-numeric",
        " ".join(f"a{i}" for i in range(1, 25)),
    ),
    "heart_statlog": Copy(
        "amritmaj/SVM-Tree",
        "d7feedb491255e60379f18a082af7810f3b93801",
        "heart.dat",
        "age sex chest_pain rest_bp chol fasting_sugar rest_ecg max_hr exercise_angina oldpeak slope n_vessels thal",
        skip=1,
    ),
    "hepatitis": Copy(
        "nom-gv/DatasetHepatitis",
        "3218016e2058acf17290efc84c96bc5eb187f92d",
        "hepatitis.data",
        "age sex steroid antivirals fatigue malaise anorexia liver_big liver_firm spleen_palpable spiders ascites "
        "varices bilirubin alk_phosphate sgot albumin protime histology",
        skip=1,
        target=0,
    ),
    "house_votes_84": Copy(
        "gowriks12/Voting_data_analysis",
        "a4890ac9693fcd347bb163687a7c18395bd67941",
        "house-votes-84.data",
        "handicapped_infants water_project_cost_sharing adoption_of_the_budget_resolution physician_fee_freeze "
        "el_salvador_aid religious_groups_in_schools anti_satellite_test_ban aid_to_nicaraguan_contras mx_missile "
        "immigration synfuels_corporation_cutback education_spending superfund_right_to_sue crime "
        "duty_free_exports export_administration_act_south_africa",
        skip=1,
        target=0,
    ),
    "mushroom": Copy(
        "Zanderax/ID3",
        "abd54a75f990b84eb47a99d329a0b6d5f585c01b",
        "agaricus-lepiota.data",
        "cap_shape cap_surface cap_color bruises odor gill_attachment gill_spacing gill_size gill_color "
        "stalk_shape stalk_root stalk_surface_above_ring stalk_surface_below_ring stalk_color_above_ring "
        "stalk_color_below_ring veil_type veil_color ring_number ring_type spore_print_color population habitat",
        skip=1,
        target=0,
    ),
    "pima": Copy(
        "majestyhao/ecs256_hw4",
        "907f0982cb5a97ddf840a6d739e4d86393187ada",
        "pima-indians-diabetes.data",
        "pregnancies glucose blood_pressure skin_thickness insulin bmi pedigree age",
        skip=1,
    ),
    "pima_ripley_test": Copy(
        _RDATASETS,
        "1c97ab8a1df2469762e635481ba27cf4e80e3e51",
        "csv/MASS/Pima.te.csv",
        _PIMA,
        skip=1,
        drop=(0,),
        numbers={"bmi": float},
    ),
    "pima_ripley_train": Copy(
        _RDATASETS,
        "cc03c29690889dbe83089f5206e2422db8c3f71f",
        "csv/MASS/Pima.tr.csv",
        _PIMA,
        skip=1,
        drop=(0,),
        numbers={"bmi": float},
    ),
    "ripley_synth_test": Copy(
        _RDATASETS,
        "cc03c29690889dbe83089f5206e2422db8c3f71f",
        "csv/MASS/synth.te.csv",
        "xs ys",
        skip=1,
        drop=(0,),
        numbers={"xs": float, "ys": float},
    ),
    "ripley_synth_train": Copy(
        _RDATASETS,
        "cc03c29690889dbe83089f5206e2422db8c3f71f",
        "csv/MASS/synth.tr.csv",
        "xs ys",
        skip=1,
        drop=(0,),
        numbers={"xs": float, "ys": float},
    ),
    "sick": Copy(
        "renatopp/arff-datasets",
        "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
        "classification/sick.arff",
        _SICK,
    ),
    "sick_test": Copy(
        "renatopp/arff-datasets",
        "c59f172882592bb58982cc54d2d3c8a2b57e9b73",
        "classification/sick.arff",
        _SICK,
        first_row=2800,
    ),
    "wdbc": Copy(
        "scikit-learn/scikit-learn",
        "fd6c962de8037b306bbb3165e477353ef5cba697",
        "sklearn/datasets/data/breast_cancer.csv",
        _CELLS,
        skip=1,
        labels={"0": "M", "1": "B"},
        installed="sklearn/datasets/data/breast_cancer.csv",
    ),
    "wpbc": Copy(
        "tmazza/random_forests",
        "29304869a14e288d7e9bad93de6211ef50d86229",
        "data/wpbc.data",
        f"time {_CELLS} tumor_size lymph_nodes",
        target=1,
        drop=(0,),
    ),
}

_KUNCHEVA = "L. I. Kuncheva's page of real medical data, Bangor University"
_IDA = "the IDA benchmark of Raetsch, Onoda and Mueller (Machine Learning 42, 2001), inputs pooled and normalised"
_USPS = "the USPS digits of LeCun et al. (1990), as in Hastie, Tibshirani and Friedman's book"

# Who made the sets of which no public copy in a plain form is known to us.
ORIGINS: dict[str, str] = {
    "colon_alon": "Alon et al., PNAS 96 (1999); R package datamicroarray, alon",
    "contractions": _KUNCHEVA,
    "ida_banana": _IDA,
    "ida_breast_cancer": _IDA,
    "ida_german": _IDA,
    "ida_image": _IDA,
    "ida_titanic": _IDA,
    "ida_waveform": _IDA,
    "laryngeal1": _KUNCHEVA,
    "leukemia_golub": "Golub et al., Science 286 (1999); R package datamicroarray, golub",
    "respiratory": _KUNCHEVA,
    "usps_test": f"{_USPS}; R package ElemStatLearn, zip.test",
    "usps_train": f"{_USPS}; R package ElemStatLearn, zip.train",
    "weaning": _KUNCHEVA,
}
