"""Words for boxes, coordinates, units, orders, pixels and per cent, by language.

The thirty most spoken languages, as they are written (Pidgin as English, Bhojpuri as Hindi; of
Hausa two words), and others. A word of another language says nothing: neither that numbers are a
box, nor what their unit or order is. So a text under its key is passed over, as it may be a label
or a colour as well as a unit; only pixels and per cent are known wherever they are spelt as in most
languages (``conventions``).
"""

from __future__ import annotations

from typing import NamedTuple


class LanguageWords(NamedTuple):
    """The words of a language, apart by blanks; "_" stands for a blank within one."""

    box: str
    coordinates: str
    unit: str  # In keys and headings, as "unit: cm"
    order: str  # In keys, as "order": "x, y, w, h"
    pixels: str
    percent: str


# English is in ``words``, ``unknown_words`` and ``conventions``
LANGUAGES = {
    "Amharic": LanguageWords("ሳጥን", "መጋጠሚያ", "አሃድ", "ቅደም", "ፒክሰል ፒክስል", "በመቶ ፐርሰንት"),
    "Arabic": LanguageWords(
        "مربع المربع إطار الإطار صندوق مستطيل",
        "إحداثيات الإحداثيات",
        "وحدة الوحدة",
        "ترتيب الترتيب",
        "بكسل بيكسل",
        "بالمئة بالمائة",
    ),
    "Bengali": LanguageWords("বাক্স বক্স", "স্থানাঙ্ক", "একক", "ক্রম", "পিক্সেল", "শতাংশ শতকরা"),
    "Chinese": LanguageWords(
        "边界框 边框 方框 检测框 矩形 包围框 邊界框 位置",
        "坐标 座標",
        "单位 單位",
        "顺序 順序",
        "像素",
        "百分",
    ),
    "Croatian": LanguageWords(
        "okvir pravokutnik",
        "koordinate",
        "jedinica jedinice",
        "redoslijed",
        "pikseli piksela",
        "postotak postotka",
    ),
    "Czech": LanguageWords(
        "rámeček obdélník",
        "souřadnice",
        "jednotka jednotky",
        "pořadí",
        "pixely pixelů",
        "procenta procento",
    ),
    "Danish": LanguageWords(
        "boks afgrænsningsboks ramme",
        "koordinater",
        "enhed enheder",
        "rækkefølge",
        "pixels",
        "procent",
    ),
    "Dutch": LanguageWords(
        "begrenzingsvak begrenzingskader kader",
        "coördinaten",
        "eenheid eenheden",
        "volgorde",
        "pixels",
        "procent",
    ),
    "Finnish": LanguageWords(
        "laatikko laatikot rajauslaatikko rajausruutu suorakulmio",
        "koordinaatit",
        "yksikkö yksiköt yksikko yksikot",
        "järjestys",
        "kuvapistettä kuvapisteinä",
        "prosenttia prosentteina",
    ),
    "French": LanguageWords(
        "boîte boîtes boite cadre rectangle",
        "coordonnées",
        "unité unités",
        "ordre",
        "pixels",
        "pourcent pour_cent pourcentage pourcentages",
    ),
    "German": LanguageWords(
        "begrenzungsrahmen begrenzungsbox rahmen rechteck",
        "koordinaten",
        "einheit einheiten",
        "reihenfolge",
        "pixeln",
        "prozent",
    ),
    "Greek": LanguageWords(
        "πλαίσιο κουτί ορθογώνιο",
        "συντεταγμένες",
        "μονάδα μονάδες",
        "σειρά",
        "εικονοστοιχεία πίξελ",
        "τοις_εκατό ποσοστό",
    ),
    "Gujarati": LanguageWords("બોક્સ બૉક્સ", "નિર્દેશાંક", "એકમ", "ક્રમ", "પિક્સેલ", "ટકા"),
    "Hausa": LanguageWords("akwati", "", "", "", "", "kashi_ɗari"),
    "Hebrew": LanguageWords(
        "תיבה תיבת התיבה מסגרת מלבן",
        "קואורדינטות",
        "יחידה יחידות",
        "סדר",
        "פיקסל פיקסלים",
        "אחוז אחוזים",
    ),
    "Hindi": LanguageWords("बॉक्स आयत", "निर्देशांक", "इकाई", "क्रम", "पिक्सेल पिक्सल", "प्रतिशत"),
    "Hungarian": LanguageWords(
        "doboz keret határolókeret befoglalódoboz téglalap",
        "koordináták koordinátái",
        "egység mértékegység",
        "sorrend",
        "képpont képpontban",
        "százalék százalékban",
    ),
    "Indonesian, Malay": LanguageWords(
        "kotak", "koordinat", "satuan", "urutan", "piksel", "persen peratus"
    ),
    "Italian": LanguageWords(
        "riquadro rettangolo",
        "coordinate",
        "unità",
        "ordine",
        "pixels",
        "percento per_cento percentuale percentuali",
    ),
    "Japanese": LanguageWords(
        "バウンディング 境界 矩形 位置",
        "座標",
        "単位",
        "順序",
        "ピクセル 画素",
        "パーセント 百分率",
    ),
    "Javanese": LanguageWords("kothak", "koordinat", "satuan", "urutan", "piksel", "persen"),
    "Kannada": LanguageWords("ಬಾಕ್ಸ್ ಪೆಟ್ಟಿಗೆ", "ನಿರ್ದೇಶಾಂಕ", "ಘಟಕ", "ಕ್ರಮ", "ಪಿಕ್ಸೆಲ್", "ಶೇಕಡಾ ಪ್ರತಿಶತ"),
    "Korean": LanguageWords("경계 상자 박스", "좌표", "단위", "순서", "픽셀 화소", "퍼센트 백분율"),
    "Malayalam": LanguageWords("ബോക്സ് പെട്ടി", "നിർദ്ദേശാങ്കം", "ഏകകം", "ക്രമം", "പിക്സൽ", "ശതമാനം"),
    "Marathi": LanguageWords("बॉक्स चौकट", "निर्देशांक", "एकक", "क्रम", "पिक्सेल", "टक्के"),
    "Norwegian": LanguageWords(
        "boks avgrensningsboks ramme",
        "koordinater",
        "enhet enheter",
        "rekkefølge",
        "piksler",
        "prosent",
    ),
    "Persian": LanguageWords("جعبه کادر مستطیل", "مختصات", "واحد", "ترتیب", "پیکسل", "درصد"),
    "Polish": LanguageWords(
        "ramka ramki prostokąt",
        "współrzędne współrzędnych współrzędnymi",
        "jednostka jednostki",
        "kolejność",
        "piksele pikseli",
        "procent procenty procentach",
    ),
    "Portuguese": LanguageWords(
        "caixa retângulo",
        "coordenadas",
        "unidade unidades",
        "ordem",
        "píxeis",
        "porcento por_cento percentual porcentagem porcentagens percentagem",
    ),
    "Punjabi": LanguageWords("ਬਾਕਸ ਡੱਬਾ", "ਨਿਰਦੇਸ਼ਾਂਕ", "ਇਕਾਈ", "ਕ੍ਰਮ", "ਪਿਕਸਲ", "ਪ੍ਰਤੀਸ਼ਤ"),
    "Romanian": LanguageWords(
        "chenar casetă dreptunghi",
        "coordonate coordonatele",
        "unitate unități",
        "ordine",
        "pixeli",
        "procente procent",
    ),
    "Russian": LanguageWords(
        "рамка рамки рамку рамке прямоугольник",
        "координаты координатах координатами координатам",
        "единица единицы",
        "порядок",
        "пиксели пикселях пикселей",
        "процент проценты процентах процентов",
    ),
    "Spanish": LanguageWords(
        "cuadro recuadro caja rectángulo",
        "coordenadas",
        "unidad unidades",
        "orden",
        "píxeles píxel",
        "porciento por_ciento porcentaje porcentajes",
    ),
    "Swahili": LanguageWords(
        "sanduku kisanduku", "viwianishi", "kipimo", "mpangilio", "pikseli", "asilimia"
    ),
    "Swedish": LanguageWords(
        "begränsningsruta avgränsningsruta avgränsningsrutan ruta",
        "koordinater",
        "enhet enheter",
        "ordning",
        "pixlar",
        "procent",
    ),
    "Tagalog": LanguageWords("kahon", "koordinado", "yunit", "ayos", "piksel", "porsiyento"),
    "Tamil": LanguageWords("பெட்டி", "ஆயத்தொலைவு", "அலகு", "வரிசை", "பிக்சல்", "சதவீதம் விழுக்காடு"),
    "Telugu": LanguageWords("బాక్స్ పెట్టె", "నిర్దేశాంకాలు", "యూనిట్", "క్రమం", "పిక్సెల్", "శాతం"),
    "Thai": LanguageWords("กรอบ กล่อง", "พิกัด", "หน่วย", "ลำดับ", "พิกเซล", "เปอร์เซ็นต์ ร้อยละ"),
    "Turkish": LanguageWords(
        "kutu kutusu çerçeve dikdörtgen",
        "koordinatlar koordinatları",
        "birim birimi",
        "sıra sırası",
        "piksel pikseller",
        "yüzde",
    ),
    "Ukrainian": LanguageWords(
        "рамка прямокутник",
        "координати координатах координатами координатам",
        "одиниця одиниці",
        "порядок",
        "пікселі пікселях пікселів",
        "відсоток відсотки відсотках відсотків",
    ),
    "Urdu": LanguageWords("باکس مستطیل", "محددات", "اکائی", "ترتیب", "پکسل پکسلز", "فیصد"),
    "Vietnamese": LanguageWords(
        "hộp khung", "tọa_độ toạ_độ", "đơn_vị", "thứ_tự", "điểm_ảnh", "phần_trăm"
    ),
}


# The sides of a box, as they stand before numbers: left, top, right, bottom
SIDES = {
    "Chinese": "左边/左边界 上边/上边界 右边/右边界 下边/下边界",
    "Chinese, traditional": "左邊/左邊界 上邊/上邊界 右邊/右邊界 下邊/下邊界",
    "Croatian": "lijevo gore desno dolje",
    "Czech": "vlevo/levá nahoře/horní vpravo/pravá dole/dolní",
    "Danish, Norwegian": "venstre øverst/topp højre/høyre nederst/bunn",
    "Dutch": "links boven rechts onder",
    "Finnish": "vasen ylä/yläreuna oikea ala/alareuna",
    "Greek": "αριστερά πάνω/επάνω δεξιά κάτω",
    "Hebrew": "שמאל למעלה/עליון ימין למטה/תחתון",
    "Hungarian": "bal/balra felső/fent jobb/jobbra alsó/lent",
    "Indonesian, Malay": "kiri atas kanan bawah",
    "Japanese": "左端 上端 右端 下端",
    "Polish": "lewa/lewo górna/góra prawa/prawo dolna/dół",
    "Romanian": "stânga sus dreapta jos",
    "Russian": "слева/левая/левый сверху/верхняя/верхний справа/правая/правый снизу/нижняя/нижний",
    "Swedish": "vänster överst/topp höger nederst/botten",
    "Turkish": "sol üst sağ alt",
    "Ukrainian": "зліва/ліва/ліворуч зверху/верхня/вгорі справа/права/праворуч знизу/нижня/внизу",
    "Vietnamese": "trái trên phải dưới",
}


def sides_by_word() -> dict[str, str]:
    """Return left, top, right or bottom by each word for it.

    >>> [sides_by_word()[word] for word in "sol üst sağ alt".split()]
    ['left', 'top', 'right', 'bottom']
    """
    sides: dict[str, str] = {}
    for words in SIDES.values():
        for side, names in zip(("left", "top", "right", "bottom"), words.split(), strict=True):
            sides.update(dict.fromkeys(names.split("/"), side))
    return sides


# The first letter of scripts in which words take endings, or stand without blanks
_FIRST_OF_SIGNS = "\u0900"


def words_for(what: str) -> list[str]:
    """Return the words of all languages for a thing, which is a field of ``LanguageWords``.

    >>> "laatikko" in words_for("box"), "tọa độ" in words_for("coordinates")
    (True, True)
    """
    words: list[str] = []
    for language in LANGUAGES.values():
        words += getattr(language, what).replace("_", "\0").split()
    return sorted({word.replace("\0", " ") for word in words}, key=lambda word: (-len(word), word))


def are_signs(word: str) -> bool:
    """Return whether a word may stand within others: its script has endings, or no blanks."""
    return word[0] >= _FIRST_OF_SIGNS


def pattern_of(words: list[str]) -> str:
    """Return a pattern that finds words, and signs also within others.

    >>> import re
    >>> re.findall(pattern_of(["kotak", "框"]), "kotak, kotaku, 边框")
    ['kotak', '框']
    """
    alone = "|".join(word.replace(" ", "[ _-]") for word in words if not are_signs(word))
    signs = "|".join(word for word in words if are_signs(word))
    return "|".join(filter(None, [rf"(?<![^\W_])(?:{alone})(?![^\W_])" if alone else "", signs]))
